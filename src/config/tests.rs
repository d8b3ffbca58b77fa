use super::*;

fn parse(text: &str) -> Result<Config> {
    Config::parse(text, Path::new("project"), "trace-attr.toml")
}

/// Message and remedy of a text that must be refused.
fn refused(text: &str) -> (String, String) {
    let error = parse(text).unwrap_err();
    (error.to_string(), error.help().unwrap_or_default().to_owned())
}

#[test]
fn values_know_their_lines() {
    let config = parse(
        "# a comment\nprocess = 'hf2q*'\nprocess_b = 'llama-*'\n\nwindow = 'quiet:10ms'\nskip_first = '1.5s'\nunits = [64, 128]\n\
         unit = 'frame'\ntiming = 'points'\nbuckets = ['2us', '8us']\nslowest = 9\nmargin = 0.5\n\n[gate]\nfail_above = '3 %'\n\
         rows = ['phase:attn=2%', 'total']\non_inconclusive = 'pass'\n",
    )
    .unwrap();
    let placed = |value: &str, line| {
        Some(Placed {
            value: value.to_owned(),
            line,
        })
    };
    assert_eq!(
        (config.process.both, config.process.b),
        (placed("hf2q*", 2), placed("llama-*", 3))
    );
    assert_eq!(config.process.a, None);
    let window = config.window.both.unwrap();
    assert_eq!((window.value, window.line), (WindowSpan::Quiet(Nanos(10_000_000)), 5));
    assert_eq!(config.skip_first.both.unwrap().value, Nanos(1_500_000_000));
    assert_eq!(config.units.both.unwrap().value, [64, 128]);
    assert_eq!(config.buckets, placed("2us,8us", 10));
    assert_eq!(config.timing.unwrap().value, TimingChoice::Points);
    assert_eq!(
        (config.slowest.unwrap().value, config.margin.unwrap().value.get()),
        (9, 0.5)
    );
    assert_eq!(
        (config.fail_above.unwrap().value.get(), config.gate_rows.unwrap().line),
        (3.0, 16)
    );
    assert!(config.pass_inconclusive.unwrap().value);
}

#[test]
fn paths_are_relative_to_the_file_and_rules_can_stand_in_it() {
    let config = parse("kernel_rules = 'k.toml'\nlabel_map = '/etc/l.toml'\nnoise = '../n.json'\n").unwrap();
    assert_eq!(
        config.kernel_rules.unwrap().value,
        Written::File("project/k.toml".into())
    );
    assert_eq!(config.label_map.unwrap().value, Written::File("/etc/l.toml".into()));
    assert_eq!(config.noise.unwrap().value, Path::new("project/../n.json"));
    let config = parse(
        "[[kernel_rules]]\nprefix = 'rope'\nfamily = 'rope'\n[[label_map]]\nname = 'attn'\na = '\\.attn$'\n[[label_map]]\nname = 'ffn'\nb = 'mlp'\n",
    )
    .unwrap();
    let Written::Here(rules) = config.kernel_rules.unwrap().value else {
        panic!()
    };
    assert_eq!(rules[0].family, "rope");
    let Written::Here(rules) = config.label_map.unwrap().value else {
        panic!()
    };
    assert_eq!((rules.len(), rules[1].b.as_deref()), (2, Some("mlp")));
}

#[test]
fn hints_are_for_keys_of_a_table() {
    let config = parse("[hints.buckets]\n\"xl_>=80us\" = 'prefill'\n[hints.phases]\n'a.b' = 'look at x'\n").unwrap();
    let hints = config.hints.unwrap().value;
    assert_eq!(hints.get("buckets", "xl_>=80us"), Some("prefill"));
    assert_eq!(
        (hints.get("phases", "a.b"), hints.get("phases", "a")),
        (Some("look at x"), None)
    );
    assert_eq!(hints.len(), 2);
}

#[test]
fn an_unknown_key_is_refused_with_its_line_and_the_nearest_key() {
    for (text, message, help) in [
        (
            "\nbukets = '2us'\n",
            "trace-attr.toml:2: unknown key `bukets`",
            "did you mean `buckets`?",
        ),
        (
            "process-a = 'x'\n",
            "trace-attr.toml:1: unknown key `process-a`",
            "did you mean `process_a`?",
        ),
        (
            "[gate]\nfail_abov = 3\n",
            "trace-attr.toml:2: unknown key `gate.fail_abov`",
            "did you mean `fail_above`?",
        ),
        (
            "[hints.bucket]\nx = 'y'\n",
            "trace-attr.toml:1: unknown key `hints.bucket`",
            "did you mean `buckets`?",
        ),
        (
            "[[label_map]]\nname = 'x'\naa = 'y'\n",
            "trace-attr.toml:3: unknown key `label_map.aa`",
            "did you mean `a`?",
        ),
        (
            "colour = 'red'\n",
            "trace-attr.toml:1: unknown key `colour`",
            "the keys here are: process, ",
        ),
    ] {
        let (error, remedy) = refused(text);
        assert_eq!(error, message);
        assert!(remedy.starts_with(help), "{remedy}");
    }
}

#[test]
fn a_value_that_its_key_cannot_have_is_refused_with_its_line() {
    for (text, message) in [
        (
            "process = 3\n",
            "trace-attr.toml:1: process: expects a text in quotes, found integer",
        ),
        ("process = ''\n", "trace-attr.toml:1: process: the text is empty"),
        (
            "\nwindow = 'decode'\n",
            "trace-attr.toml:2: window: `decode` is no window",
        ),
        ("skip_first = '5'\n", "trace-attr.toml:1: skip_first: `5` is no time"),
        ("units = 0\n", "trace-attr.toml:1: units: times cannot be divided by 0"),
        ("units = []\n", "trace-attr.toml:1: units: times cannot be divided by 0"),
        (
            "units = [64,\n 'x']\n",
            "trace-attr.toml:2: units: expects a whole number, found string",
        ),
        (
            "units = -4\n",
            "trace-attr.toml:1: units: expects a whole number from 0",
        ),
        ("unit = 'two words'\n", "trace-attr.toml:1: unit: use one short word"),
        (
            "timing = 'both'\n",
            "trace-attr.toml:1: timing: `both` is none of \"auto\", \"intervals\", \"points\"",
        ),
        (
            "buckets = '2us,2us'\n",
            "trace-attr.toml:1: buckets: bucket edge 2us is given twice",
        ),
        (
            "slowest = 70000\n",
            "trace-attr.toml:1: slowest: expects a whole number from 0 to 65535",
        ),
        ("margin = 'x'\n", "trace-attr.toml:1: margin: `x` is no percentage"),
        ("margin = nan\n", "trace-attr.toml:1: margin: `nan` is no percentage"),
        ("control = '('\n", "trace-attr.toml:1: control: unclosed group"),
        ("gate = 3\n", "trace-attr.toml:1: gate: expects a table, found integer"),
        ("[gate]\nrows = ['phse:x']\n", "trace-attr.toml:2: gate.rows: "),
        (
            "[gate]\non_inconclusive = 'maybe'\n",
            "trace-attr.toml:2: gate.on_inconclusive: `maybe` is none of",
        ),
        (
            "[hints.phases]\nx = ''\n",
            "trace-attr.toml:2: hints.phases.x: the text is empty",
        ),
        (
            "kernel_rules = []\n",
            "trace-attr.toml:1: kernel_rules: there is no rule",
        ),
        (
            "[[kernel_rules]]\nprefix = 'kernel_x'\nfamily = 'y'\n",
            "trace-attr.toml:1: kernel_rules: kernel rule with prefix `kernel_x` can match no kernel",
        ),
        (
            "[[label_map]]\nname = 'x'\na = 'a'\n[[label_map]]\nname = 'y'\na = '('\n",
            "trace-attr.toml:1: label_map: label map: entry 2 (`y`): its expression for A: unclosed group",
        ),
        ("process = \n", "trace-attr.toml:1: no TOML: "),
        ("a = 1\na = 2\n", "trace-attr.toml:2: no TOML: duplicate key"),
    ] {
        let (error, _) = refused(text);
        assert!(error.starts_with(message), "{text:?}: {error}");
        assert!(!error.contains('\n'), "{error}");
    }
}
