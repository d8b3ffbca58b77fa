use super::*;

fn export(schema: &str, body: &str) -> String {
    format!(
        "<?xml version=\"1.0\"?>\n<trace-query-result>\n<node xpath='//trace-toc[1]/run[1]/data[1]/table[1]'>{schema}{body}\n</node></trace-query-result>\n"
    )
}

fn schema(name: &str, columns: &[(&str, &str)]) -> String {
    let columns: String = columns
        .iter()
        .map(|(m, t)| {
            format!("<col><mnemonic>{m}</mnemonic><name>{m}</name><engineering-type>{t}</engineering-type></col>")
        })
        .collect();
    format!("<schema name=\"{name}\">{columns}</schema>")
}

/// Every row of every table, each cell as text, NULL as `-`.
fn rows(xml: &str) -> Result<Vec<Vec<String>>> {
    let mut reader = ExportReader::new(xml.as_bytes(), Keep::All);
    let mut all = Vec::new();
    while let Some(part) = reader.next_part()? {
        let Part::Table { schema, .. } = part else { continue };
        let columns: Vec<_> = (0..schema.columns().len()).map(ColumnIndex).collect();
        while let Some(row) = reader.read_row()? {
            all.push(
                columns
                    .iter()
                    .map(|at| row.text(*at).unwrap_or_else(|| "-".into()))
                    .collect(),
            );
        }
    }
    Ok(all)
}

fn two() -> String {
    schema("t", &[("start", "start-time"), ("duration", "duration")])
}

#[test]
fn ids_at_every_depth_are_resolved() {
    let schema = schema(
        "t",
        &[("label", "formatted-label"), ("process", "process"), ("n", "uint64")],
    );
    let xml = export(
        &schema,
        "<row><formatted-label id=\"1\" fmt=\"x\"><string id=\"2\" fmt=\"a\">a</string><narrative-text id=\"3\" fmt=\" (\"> (</narrative-text>\
         <process id=\"4\" fmt=\"p (7)\"><pid id=\"5\" fmt=\"7\">7</pid></process></formatted-label><process ref=\"4\"/><uint64 id=\"6\" fmt=\"1.000\">1000</uint64></row>\
         \n<row><formatted-label ref=\"1\"/><process ref=\"4\"/><uint64 ref=\"6\"/></row>",
    );
    assert_eq!(
        rows(&xml).unwrap(),
        [["a (p (7)", "p (7)", "1000"], ["a (p (7)", "p (7)", "1000"]]
    );
}

#[test]
fn null_keeps_its_place_and_empty_is_not_null() {
    let schema = schema("t", &[("a", "string"), ("b", "string"), ("c", "string")]);
    let xml = export(
        &schema,
        "<row><sentinel/><string id=\"1\" fmt=\"\"></string><string fmt=\"\" /></row>",
    );
    assert_eq!(rows(&xml).unwrap(), [["-", "", ""]]);
}

#[test]
fn a_shifted_column_is_refused_with_its_place() {
    let xml = export(
        &two(),
        "<row><start-time>1</start-time><gpu-channel-name>Compute</gpu-channel-name></row>",
    );
    let error = rows(&xml).unwrap_err().to_string();
    assert!(error.contains("table `t`, row 1 (byte "), "{error}");
    assert!(
        error.contains("column `duration` expects <duration>, found <gpu-channel-name>"),
        "{error}"
    );
}

#[test]
fn too_few_and_too_many_cells_are_refused() {
    let few = rows(&export(&two(), "<row><start-time>1</start-time></row>"))
        .unwrap_err()
        .to_string();
    assert!(few.contains("the row has 1 cell, the table has 2 columns"), "{few}");
    let many = export(
        &two(),
        "<row><start-time>1</start-time><duration>1</duration><duration>1</duration></row>",
    );
    let many = rows(&many).unwrap_err().to_string();
    assert!(many.contains("the row has more than 2 cells"), "{many}");
    let none = rows(&export(&two(), "<row/>")).unwrap_err().to_string();
    assert!(none.contains("the row has 0 cells"), "{none}");
}

#[test]
fn a_dangling_reference_and_a_reference_to_another_type_are_refused() {
    let dangling = rows(&export(
        &two(),
        "<row><start-time>1</start-time><duration ref=\"9\"/></row>",
    ))
    .unwrap_err();
    assert!(
        matches!(dangling.kind(), ErrorKind::DanglingReference { id: 9, .. }),
        "{dangling}"
    );
    let other = export(
        &two(),
        "<row><start-time id=\"1\">1</start-time><duration ref=\"1\"/></row>",
    );
    let other = rows(&other).unwrap_err().to_string();
    assert!(
        other.contains("a reference to id 1, which is a <start-time>"),
        "{other}"
    );
}

#[test]
fn a_later_definition_replaces_an_earlier_one_also_by_a_type_nobody_needs() {
    let schema = schema("t", &[("a", "duration"), ("b", "color")]);
    let body = "<row><duration id=\"2\">1</duration><color id=\"3\">1</color></row><row><duration ref=\"2\"/><color id=\"2\">1</color></row>\
                <row><duration ref=\"2\"/><color>1</color></row>";
    let mut reader = ExportReader::new(std::io::Cursor::new(export(&schema, body)), Keep::Types(&["duration"]));
    reader.next_part().unwrap();
    assert!(reader.read_row().unwrap().is_some());
    assert!(reader.read_row().unwrap().is_some());
    assert!(matches!(
        reader.read_row().err().unwrap().kind(),
        ErrorKind::DanglingReference { id: 2, .. }
    ));
}

#[test]
fn a_cut_anywhere_is_an_error_and_never_a_shorter_table() {
    let xml = export(
        &two(),
        "<row><start-time id=\"1\" fmt=\"a &amp; b\">1</start-time><duration>2</duration></row>\n<row><start-time ref=\"1\"/><duration>&#51;</duration></row>",
    );
    let whole = xml.trim_end().len();
    assert_eq!(rows(&xml).unwrap().len(), 2);
    for cut in 1..whole {
        // Cut inside the declaration nothing of an export has begun, so the words differ; it is an error all the same.
        let result = rows(&xml[..cut]);
        if cut > "<?xml version=\"1.0\"?>\n<".len() {
            let error = result.expect_err(&format!("cut at {cut}"));
            assert!(
                matches!(error.kind(), ErrorKind::Truncated { .. } | ErrorKind::Syntax { .. }),
                "{cut}: {error}"
            );
        } else {
            assert!(result.map_or(true, |rows| rows.is_empty()));
        }
    }
}

#[test]
fn entities_references_and_cdata_are_text() {
    let xml = export(
        &schema("t", &[("a", "string")]),
        "<row><string>vec&lt;f32, 4&gt; &amp;&amp; &#x3C0; &quot;x&quot;<![CDATA[<y>]]></string></row>",
    );
    assert_eq!(rows(&xml).unwrap(), [["vec<f32, 4> && π \"x\"<y>"]]);
    let unknown = export(&schema("t", &[("a", "string")]), "<row><string>&lol;</string></row>");
    assert!(
        rows(&unknown)
            .unwrap_err()
            .to_string()
            .contains("unknown entity `&lol;`")
    );
}

#[test]
fn rows_without_a_schema_use_the_previous_one_or_are_refused() {
    let body = "<row><start-time id=\"1\">1</start-time><duration id=\"2\">2</duration></row></node>\n<node xpath='y'><row><start-time ref=\"1\"/><duration ref=\"2\"/></row>";
    assert_eq!(rows(&export(&two(), body)).unwrap(), [["1", "2"], ["1", "2"]]);
    let none = rows(&export("", "<row a=\"1\"/>")).unwrap_err().to_string();
    assert!(none.contains("rows without a <schema>"), "{none}");
}

#[test]
fn hostile_sizes_end_in_an_error() {
    let deep = format!("<row>{}", "<start-time>".repeat(200_000));
    assert!(matches!(
        rows(&export(&two(), &deep)).unwrap_err().kind(),
        ErrorKind::Limit { .. }
    ));
    let attributes: String = (0..200_000).map(|n| format!(" a{n}=\"1\"")).collect();
    let wide = format!("<row><start-time{attributes}>1</start-time><duration>1</duration></row>");
    assert!(
        rows(&export(&two(), &wide)).is_err(),
        "more attribute names than any schema has"
    );
    let endless = format!("<row><start-time>{}", "1".repeat(17 << 20));
    assert!(matches!(
        rows(&export(&two(), &endless)).unwrap_err().kind(),
        ErrorKind::Limit { .. }
    ));
}

#[test]
fn numbers_keep_their_text() {
    let schema = schema("t", &[("a", "uint64")]);
    for text in [
        "0",
        "007",
        "-5",
        "18446744073709551615",
        "1125899906842623",
        "1125899906842624",
        "1e5",
        "0.25",
        "+3",
    ] {
        assert_eq!(
            rows(&export(
                &schema,
                &format!("<row><uint64>\r\n {text}\r\n</uint64></row>")
            ))
            .unwrap(),
            [[text]]
        );
    }
}

#[test]
fn an_id_and_a_ref_in_one_tag_are_read_alike_whatever_is_kept() {
    let xml = export(
        &two(),
        "<row><start-time id=\"1\">5</start-time><duration id=\"2\">6</duration></row>\
         <row><start-time id=\"3\" ref=\"1\"/><duration id=\"4\" fmt=\"x\" ref=\"2\"/></row><row><start-time ref=\"3\"/><duration ref=\"4\"/></row>",
    );
    for keep in [Keep::All, Keep::Types(&["start-time", "duration"])] {
        let mut reader = ExportReader::new(xml.as_bytes(), keep);
        reader.next_part().unwrap();
        let mut rows = 0;
        while let Some(row) = reader.read_row().unwrap() {
            assert_eq!(row.opt_u64(ColumnIndex(0)).unwrap(), Some(5));
            assert_eq!(row.opt_u64(ColumnIndex(1)).unwrap(), Some(6));
            rows += 1;
        }
        assert_eq!(rows, 3);
    }
}

/// Rows of one label each; every label is `step` of the id before it.
fn chain(length: usize, step: fn(usize) -> String) -> String {
    let body: String = (2..length)
        .map(|id| format!("<row><string id=\"{id}\">{}</string></row>", step(id - 1)))
        .collect();
    export(
        &schema("t", &[("label", "string")]),
        &format!("<row><string id=\"1\">some text</string></row>{body}"),
    )
}

#[test]
fn a_chain_of_references_is_refused_before_it_is_as_deep_as_the_stack() {
    let xml = chain(100_000, |id| format!("<string ref=\"{id}\"/>"));
    let error = rows(&xml).unwrap_err().to_string();
    assert!(error.contains("nested more than 128 levels deep"), "{error}");
    let xml = chain(100, |id| format!("<string ref=\"{id}\"/>"));
    assert_eq!(rows(&xml).unwrap()[98], ["some text"]);
}

#[test]
fn references_that_double_a_text_at_every_step_are_refused() {
    let xml = chain(60, |id| format!("<string ref=\"{id}\"/><string ref=\"{id}\"/>"));
    let error = rows(&xml).unwrap_err().to_string();
    assert!(error.contains("larger than any name"), "{error}");
}

#[test]
fn many_cells_that_refer_to_one_large_text_are_refused_where_names_are_kept() {
    let large = "x".repeat(1 << 20);
    let body: String = (0..2000)
        .map(|n| format!("<row><string><string>{n}</string><string ref=\"1\"/></string></row>"))
        .collect();
    let xml = export(
        &schema("t", &[("label", "string")]),
        &format!("<row><string id=\"1\">{large}</string></row>{body}"),
    );
    let mut reader = ExportReader::new(xml.as_bytes(), Keep::Types(&["string"]));
    reader.next_part().unwrap();
    let error = loop {
        match reader.read_row() {
            Ok(row) => assert!(row.is_some(), "all rows were read"),
            Err(error) => break error.to_string(),
        }
    };
    assert!(error.contains("larger than any name"), "{error}");
}

#[test]
fn a_text_in_pieces_has_the_bound_of_a_text_in_one() {
    let piece = format!("{}<!-- -->", "x".repeat(1 << 20));
    let xml = export(
        &schema("t", &[("label", "string")]),
        &format!("<row><string>{}</string></row>", piece.repeat(20)),
    );
    let error = rows(&xml).unwrap_err().to_string();
    assert!(error.contains("one row is longer than 16 MiB"), "{error}");
}

#[test]
fn an_element_is_no_attribute() {
    let xml = export(
        &schema("t", &[("process", "process")]),
        "<row><process><@fmt>p (7)</@fmt></process></row>",
    );
    assert!(rows(&xml).unwrap_err().to_string().contains("no element name"));
}
