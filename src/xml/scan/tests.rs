use super::super::{Column, Keep};
use super::*;

const COLUMNS: [&str; 4] = ["start-time", "formatted-label", "process", "any"];

/// Cells of a document with these columns that has had one row of each type already, and its schema.
fn begun(keep: Keep<'_>) -> (Cells, Schema) {
    let mut cells = Cells::new(keep);
    let mut schema = Schema {
        plain: true,
        ..Schema::default()
    };
    for kind in COLUMNS {
        schema.columns.push(Column {
            mnemonic: kind.to_owned(),
            title: kind.to_owned(),
            kind: kind.to_owned(),
            tag: cells.tag(kind).unwrap(),
        });
    }
    for name in ["pid", "string", "weight"] {
        cells.tag(name).unwrap();
    }
    let first = "<row><start-time id=\"1\" fmt=\"00:05\">5</start-time><formatted-label id=\"2\" fmt=\"x (p (7))\">\
        <string id=\"3\" fmt=\"x\">x</string><process id=\"4\" fmt=\"p (7)\"><pid id=\"5\" fmt=\"7\">7</pid></process>\
        </formatted-label><process ref=\"4\"/><weight id=\"6\" fmt=\"1\">1</weight></row>\n";
    let scanned = cells.scan_row(first.as_bytes(), &schema).unwrap();
    assert_eq!((scanned.begin, scanned.end), (0, first.len() - 1));
    (cells, schema)
}

/// Something after a row, as there always is in a document.
const BEHIND: &str = "\n</node></trace-query-result>\n                                                                    \
    \x20                                                                                                          ";

#[test]
fn what_xctrace_writes_is_for_the_scanner() {
    for keep in [Keep::All, Keep::Types(&["start-time", "formatted-label", "process"])] {
        for row in [
            "\n<row><start-time ref=\"1\"/><formatted-label ref=\"2\"/><process ref=\"4\"/><sentinel/></row>",
            "<row><sentinel/><formatted-label id=\"7\" fmt=\"a &amp; b\">a &amp; b</formatted-label><process id=\"8\" fmt=\"q\"></process><start-time ref=\"1\"/></row>",
            "<row><start-time fmt=\"it's 8.75 µs\">18446744073709551615</start-time><formatted-label><sentinel/><string ref=\"3\"/></formatted-label><sentinel/><weight>-1</weight></row>",
            "<row><start-time id=\"9999999999999999\" fmt=\"\">0</start-time><formatted-label ref=\"2\"/><sentinel/><sentinel/></row>",
        ] {
            let (mut cells, schema) = begun(keep);
            let text = format!("{row}{BEHIND}");
            let scanned = cells.scan_row(text.as_bytes(), &schema);
            assert_eq!(scanned.map(|row| row.end), Ok(row.len()), "{row}");
            assert_eq!(cells.row.len(), 4);
        }
    }
}

#[test]
fn what_is_for_the_tokenizer_leaves_no_trace() {
    let rest = "<formatted-label ref=\"2\"/><process ref=\"4\"/><sentinel/></row>";
    let with = |cell: &str| format!("<row>{cell}{rest}");
    for row in [
        "</node>".to_owned(),
        "\r\n<row>".to_owned(),
        "<row/>".to_owned(),
        "<row a=\"1\">".to_owned(),
        with("<!-- --><sentinel/>"),
        with("\n<sentinel/>"),
        with("<sentinel />"),
        with("<sentinel id=\"1\"/>"),
        with("<start-time id='7'>1</start-time>"),
        with("<start-time fmt=\"x\" id=\"7\">1</start-time>"),
        with("<start-time id=\"7\" ref=\"1\"/>"),
        with("<start-time id=\"7\"/>"),
        with("<start-time id=\"7\">1</start-time >"),
        with("<start-time id=\"7\">1</start-timf>"),
        with("<start-time id=\"18446744073709551616\">1</start-time>"),
        with("<start-time id=\"\">1</start-time>"),
        with("<start-time id=\"7\">&#49;</start-time>"),
        with("<start-time id=\"7\">&none;</start-time>"),
        with("<start-time id=\"7\"><![CDATA[1]]></start-time>"),
        with("<start-time id=\"7\"><string>new</string> </start-time>"),
        with("<start-time id=\"7\"><unheard-of>1</unheard-of></start-time>"),
        with("<start-time id=\"7\"><@fmt>1</@fmt></start-time>"),
        // What is wrong, not only unusual.
        with("<duration id=\"7\">1</duration>"),
        with("<start-time ref=\"99\"/>"),
        with("<start-time ref=\"3\"/>"),
        with("<start-time id=\"7\">new</start-time><sentinel/>"),
        "<row><start-time id=\"7\">new</start-time><formatted-label id=\"1\"><string id=\"2\">also new</string></formatted-label></row>".to_owned(),
    ] {
        let (mut cells, schema) = begun(Keep::All);
        let before = (cells.pool.mark(), cells.pool.text_bytes(), cells.tag_bytes, cells.full_bytes);
        let first = [1, 2, 7].map(|id| cells.ids.get(id));
        let text = format!("{row}{BEHIND}");
        assert_eq!(cells.scan_row(text.as_bytes(), &schema), Err(Stop::Odd), "{row}");
        let after = (cells.pool.mark(), cells.pool.text_bytes(), cells.tag_bytes, cells.full_bytes);
        assert_eq!((before, first), (after, [1, 2, 7].map(|id| cells.ids.get(id))), "{row}");
    }
}

#[test]
fn a_row_that_is_not_all_there_is_waited_for() {
    let (mut cells, schema) = begun(Keep::All);
    let row = "\n<row><start-time ref=\"1\"/><formatted-label id=\"7\" fmt=\"a\">new &lt;</formatted-label><process ref=\"4\"/><sentinel/></row>";
    for end in 0..row.len() {
        assert_eq!(
            cells.scan_row(&row.as_bytes()[..end], &schema),
            Err(Stop::Short),
            "{end}"
        );
    }
    assert!(cells.scan_row(row.as_bytes(), &schema).is_ok());
    // Behind the last row nothing is.
    assert_eq!(cells.scan_row(b"\n</", &schema), Err(Stop::Odd));
}

#[test]
fn digits_are_read_eight_at_a_time() {
    for text in [
        "7",
        "12345678",
        "123456789",
        "0012",
        "1234567890123456",
        "9999999999999999",
    ] {
        let padded = format!("{text}<                        ");
        assert_eq!(
            digits(padded.as_bytes()),
            Some((text.parse().unwrap(), text.len())),
            "{text}"
        );
    }
    for text in ["", "-1", "x", "/", ":", "\u{b5}", "12345678901234567"] {
        assert_eq!(
            digits(format!("{text}                        ").as_bytes()),
            None,
            "{text}"
        );
    }
    // A byte far above the digits spoils none before it.
    assert_eq!(digits("12\u{fffd}\u{fffd}        ".as_bytes()), Some((12, 2)));
}

#[test]
fn a_byte_is_found_wherever_it_is() {
    let text: Vec<u8> = (0..80)
        .map(|at| if at % 3 == 0 { 0xa2 } else { b'!' + at })
        .filter(|byte| *byte != b'"')
        .collect();
    for at in 0..text.len() {
        let mut text = text.clone();
        text[at] = b'"';
        assert_eq!(find(b'"', &text), Some(at));
    }
    assert_eq!(find(b'"', &text), None);
}
