//! Labels that try to be something else: markup, formulas, commands, numbers, nothing at all. Every format that labels go
//! into is tried with all of them.

/// Labels that try to be something else.
pub fn nasty() -> Vec<String> {
    let mut labels: Vec<String> = [
        "plain.label",
        "tab\tnewline\nreturn\r",
        "\u{1b}[31mred\u{1b}[0m\u{1b}]0;title\u{7}",
        "bell\u{7}null-like\u{1}delete\u{7f}c1\u{9b}2J",
        "\u{202e}backwards\u{202c}\u{2066}isolated\u{2069}",
        "zero\u{200b}width\u{feff}joined\u{2060}soft\u{ad}",
        "line\u{2028}paragraph\u{2029}",
        "<img src=x onerror=alert(1)><script>x</script>",
        "</testcase><failure/>]]>&amp;&lt;\"'",
        "a|b `c` **d** _e_ [f](http://g) ~~h~~ $i$",
        "@octocat #12 GH-3",
        "=HYPERLINK(\"x\")",
        "+1",
        "-1",
        "@SUM(A1)",
        "a,b;c\"d\"",
        "::error::mine",
        "x\n::error::mine",
        "x\r\n::set-output name=a::b",
        "##[error]mine",
        "##vso[task.complete result=Succeeded]",
        "100% %0A::error::mine",
        "spaces and\u{a0}no-break",
        "a/side=b/key=c-8",
        "x-bencher-ignore",
        "行列積 ✅ e\u{301}tape",
        "{\"json\": null}",
        "NaN",
        "Infinity",
        "semi;colon;frames 12",
        "#comment 7 8.5",
        "frame_[k]",
    ]
    .map(str::to_owned)
    .into();
    labels.push("試".repeat(100));
    labels.push(format!("a{}", "\u{301}".repeat(50)));
    labels
}

/// Two labels of 10 kB that differ at their end.
pub fn long() -> [String; 2] {
    ["1", "2"].map(|end| "long ".repeat(2_000) + end)
}

/// Every character that XML acts on or that a reader would change, as a number.
pub fn xml(label: &str) -> String {
    let mut out = String::new();
    for c in label.chars() {
        if c.is_alphanumeric() {
            out.push(c);
        } else {
            out += &format!("&#{};", u32::from(c));
        }
    }
    out
}

/// Characters that show nothing or change how their neighbours are shown: no text may hold them.
pub fn hidden(text: &str) -> Option<char> {
    text.chars().find(|c| {
        (c.is_control() && *c != '\n')
            || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{ad}')
    })
}
