//! Values of a timeline as JSON.

use serde_json::{Map, Value as Json, json};

use crate::label::visible;
use crate::timeline::Value;

/// The value; what was not measured is an object with the reason.
pub(super) fn of(value: &Value) -> Json {
    match value {
        Value::Text(text) => json!(visible(text)),
        // Integers that a double cannot hold are texts.
        Value::Whole(number) if *number > 1 << 53 => json!(number.to_string()),
        Value::Whole(number) => json!(number),
        Value::Number(number) => json!(number),
        Value::Absent(reason) => json!({ "absent": reason }),
        Value::List(values) => values.iter().map(of).collect(),
        Value::Named(values) => Json::Object(named(values)),
    }
}

/// Several values by name.
pub(super) fn named<N: AsRef<str>>(values: &[(N, Value)]) -> Map<String, Json> {
    let each = values.iter().map(|(name, value)| (visible(name.as_ref()), of(value)));
    each.collect()
}
