//! The least that reading XML can be: the events of quick-xml for a file, and nothing done with them. What reading an
//! export is measured against: `cargo run --release --example tokenizer FILE`.
#![allow(clippy::expect_used, clippy::print_stdout)]

use std::fs::File;
use std::io::BufReader;

use quick_xml::Reader;
use quick_xml::events::Event;

fn main() {
    let path = std::env::args().nth(1).expect("usage: tokenizer FILE");
    let file = File::open(path).expect("the file can be opened");
    let mut reader = Reader::from_reader(BufReader::with_capacity(256 << 10, file));
    let mut buffer = Vec::new();
    let mut events = 0u64;
    loop {
        buffer.clear();
        match reader.read_event_into(&mut buffer).expect("well-formed XML") {
            Event::Eof => break,
            _ => events += 1,
        }
    }
    println!("{events} events");
}
