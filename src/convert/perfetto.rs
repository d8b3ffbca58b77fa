//! Perfetto's protobuf: a track for each lane, under a track for each group; slices as begin and end.
//!
//! ```text
//! packet { track_descriptor { uuid: 0x100000001 parent_uuid: 0x100000000 name: "Compute" } }
//! packet { timestamp: 1204 track_event { type: SLICE_BEGIN track_uuid: … name_iid: 3 … } interned_data { … } sequence_flags: 2 }
//! packet { timestamp: 1500 track_event { type: SLICE_END track_uuid: … } }
//! ```
//!
//! All packets are of one sequence, whose number is not 0. Its first packet says that nothing was interned before, and
//! every packet that uses a number for a text says that it needs what was (`sequence_flags`); a reader that is not told
//! so drops them. Numbers for texts begin at 1, because 0 means none. Groups are tracks and no processes: several trials
//! can have one pid. Times are ns, packets in the order of a lane; the reader sorts them.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;

use super::lanes::{Edge, Lanes, edges};
use super::wire::Message;
use crate::label::visible;
use crate::timeline::{Slice, Timeline, Value};

/// The one sequence.
const SEQUENCE: u64 = 1;

/// Fields by their numbers in Perfetto's `.proto` files.
mod field {
    pub(super) mod trace {
        pub(in super::super) const PACKET: u32 = 1;
    }
    pub(super) mod packet {
        pub(in super::super) const TIMESTAMP: u32 = 8;
        pub(in super::super) const SEQUENCE_ID: u32 = 10;
        pub(in super::super) const TRACK_EVENT: u32 = 11;
        pub(in super::super) const INTERNED_DATA: u32 = 12;
        pub(in super::super) const SEQUENCE_FLAGS: u32 = 13;
        pub(in super::super) const TRACK_DESCRIPTOR: u32 = 60;
    }
    pub(super) mod track {
        pub(in super::super) const UUID: u32 = 1;
        pub(in super::super) const NAME: u32 = 2;
        pub(in super::super) const PARENT_UUID: u32 = 5;
        pub(in super::super) const CHILD_ORDERING: u32 = 11;
        pub(in super::super) const SIBLING_ORDER_RANK: u32 = 12;
    }
    pub(super) mod event {
        pub(in super::super) const CATEGORY_IIDS: u32 = 3;
        pub(in super::super) const DEBUG_ANNOTATIONS: u32 = 4;
        pub(in super::super) const TYPE: u32 = 9;
        pub(in super::super) const NAME_IID: u32 = 10;
        pub(in super::super) const TRACK_UUID: u32 = 11;
        pub(in super::super) const FLOW_IDS: u32 = 47;
        pub(in super::super) const TERMINATING_FLOW_IDS: u32 = 48;
    }
    pub(super) mod annotation {
        pub(in super::super) const NAME_IID: u32 = 1;
        pub(in super::super) const UINT_VALUE: u32 = 3;
        pub(in super::super) const DOUBLE_VALUE: u32 = 5;
        pub(in super::super) const DICT_ENTRIES: u32 = 11;
        pub(in super::super) const ARRAY_VALUES: u32 = 12;
        pub(in super::super) const STRING_VALUE_IID: u32 = 17;
    }
}

/// `SEQ_INCREMENTAL_STATE_CLEARED`.
const CLEARED: u64 = 1;
/// `SEQ_NEEDS_INCREMENTAL_STATE`.
const NEEDS_STATE: u64 = 2;
/// `TrackDescriptor.ChildTracksOrdering.EXPLICIT`.
const EXPLICIT: u64 = 3;

/// `TrackEvent.Type`.
#[derive(Clone, Copy)]
enum Kind {
    Begin = 1,
    End = 2,
    Instant = 3,
}

pub(super) fn write(timeline: &Timeline<'_>, out: &mut dyn io::Write) -> io::Result<()> {
    let mut file = File {
        out,
        first: true,
        interned: Interned::default(),
        flows: HashMap::new(),
    };
    let mut left_out = 0;
    for (group, number) in timeline.groups.iter().zip(1u64..) {
        let parent = number << 32;
        file.track(parent, None, &group.name, number)?;
        let mut rank = 0;
        for track in &group.tracks {
            let lanes = Lanes::of(track);
            left_out += lanes.left_out;
            for (name, lane) in lanes.named(track) {
                rank += 1;
                let uuid = parent + rank;
                file.track(uuid, Some(parent), &name, rank)?;
                edges(track, lane, |edge| match edge {
                    Edge::Begin(slice) => file.begin(uuid, slice),
                    Edge::End(slice) => file.event(Kind::End, uuid, slice.end_ns(), Message::default()),
                })?;
            }
        }
    }
    // What is known of the whole file stands at its beginning, on a track of its own.
    let about = u64::MAX >> 1;
    file.track(about, None, "about this file", 0)?;
    let mut event = Message::default();
    let name = file.interned.number(Text::EventName, "about this file");
    event.varint(field::event::NAME_IID, name);
    let own = [
        (Arc::from("slices_left_out"), Value::Whole(left_out)),
        (Arc::from("writer"), Value::Text("trace-attr".into())),
    ];
    for (name, value) in timeline.about.iter().chain(&own) {
        let annotation = file.interned.annotation(Some(name), value);
        event.message(field::event::DEBUG_ANNOTATIONS, &annotation);
    }
    file.event(Kind::Instant, about, 0, event)
}

struct File<'o> {
    out: &'o mut dyn io::Write,
    /// Whether the next packet is the first.
    first: bool,
    interned: Interned,
    /// How often each flow was met.
    flows: HashMap<u64, u32>,
}

impl File<'_> {
    fn packet(&mut self, mut packet: Message, needs_state: bool) -> io::Result<()> {
        packet.varint(field::packet::SEQUENCE_ID, SEQUENCE);
        let cleared = if std::mem::take(&mut self.first) { CLEARED } else { 0 };
        let flags = cleared | if needs_state { NEEDS_STATE } else { 0 };
        if flags > 0 {
            packet.varint(field::packet::SEQUENCE_FLAGS, flags);
        }
        let mut trace = Message::default();
        trace.message(field::trace::PACKET, &packet);
        self.out.write_all(trace.bytes())
    }

    fn track(&mut self, uuid: u64, parent: Option<u64>, name: &str, rank: u64) -> io::Result<()> {
        let mut track = Message::default();
        track.varint(field::track::UUID, uuid);
        track.text(field::track::NAME, &visible(name));
        match parent {
            Some(parent) => track.varint(field::track::PARENT_UUID, parent),
            None => track.varint(field::track::CHILD_ORDERING, EXPLICIT),
        }
        track.varint(field::track::SIBLING_ORDER_RANK, rank);
        let mut packet = Message::default();
        packet.message(field::packet::TRACK_DESCRIPTOR, &track);
        self.packet(packet, false)
    }

    fn begin(&mut self, track: u64, slice: &Slice) -> io::Result<()> {
        let mut event = Message::default();
        let category = self.interned.number(Text::Category, slice.category);
        event.varint(field::event::CATEGORY_IIDS, category);
        let name = self.interned.number(Text::EventName, &slice.name);
        event.varint(field::event::NAME_IID, name);
        for (name, value) in &slice.arguments {
            let annotation = self.interned.annotation(Some(name), value);
            event.message(field::event::DEBUG_ANNOTATIONS, &annotation);
        }
        if let Some(flow) = slice.flow {
            let met = self.flows.entry(flow).or_default();
            *met += 1;
            // 0 is no flow.
            match met {
                1 => event.fixed64(field::event::FLOW_IDS, flow.saturating_add(1)),
                _ => event.fixed64(field::event::TERMINATING_FLOW_IDS, flow.saturating_add(1)),
            }
        }
        self.event(Kind::Begin, track, slice.start_ns, event)
    }

    fn event(&mut self, kind: Kind, track: u64, at_ns: u64, mut event: Message) -> io::Result<()> {
        event.varint(field::event::TYPE, kind as u64);
        event.varint(field::event::TRACK_UUID, track);
        let mut packet = Message::default();
        packet.varint(field::packet::TIMESTAMP, at_ns);
        packet.message(field::packet::TRACK_EVENT, &event);
        let new = std::mem::take(&mut self.interned.new);
        if !new.bytes().is_empty() {
            packet.message(field::packet::INTERNED_DATA, &new);
        }
        self.packet(packet, !matches!(kind, Kind::End))
    }
}

/// What a text is for: each has its own numbers, and its field in `InternedData`.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Text {
    Category = 1,
    EventName = 2,
    AnnotationName = 3,
    AnnotationValue = 29,
}

/// Numbers of texts that were written, and what is new for the next packet.
#[derive(Default)]
struct Interned {
    categories: HashMap<String, u64>,
    names: HashMap<String, u64>,
    annotation_names: HashMap<String, u64>,
    annotation_texts: HashMap<String, u64>,
    new: Message,
}

impl Interned {
    fn number(&mut self, kind: Text, text: &str) -> u64 {
        let known = match kind {
            Text::Category => &mut self.categories,
            Text::EventName => &mut self.names,
            Text::AnnotationName => &mut self.annotation_names,
            Text::AnnotationValue => &mut self.annotation_texts,
        };
        if let Some(number) = known.get(text) {
            return *number;
        }
        let number = known.len() as u64 + 1;
        known.insert(text.to_owned(), number);
        let mut entry = Message::default();
        entry.varint(1, number);
        entry.text(2, &visible(text));
        self.new.message(kind as u32, &entry);
        number
    }

    /// A `DebugAnnotation`; those of an array have no name.
    fn annotation(&mut self, name: Option<&str>, value: &Value) -> Message {
        use field::annotation as at;
        let mut message = Message::default();
        if let Some(name) = name {
            let number = self.number(Text::AnnotationName, name);
            message.varint(at::NAME_IID, number);
        }
        match value {
            Value::Text(text) => {
                let number = self.number(Text::AnnotationValue, text);
                message.varint(at::STRING_VALUE_IID, number);
            }
            Value::Whole(number) => message.varint(at::UINT_VALUE, *number),
            Value::Number(number) => message.double(at::DOUBLE_VALUE, *number),
            Value::Absent(reason) => {
                let reason = self.annotation(Some("absent"), &Value::Text((*reason).into()));
                message.message(at::DICT_ENTRIES, &reason);
            }
            Value::List(values) => {
                for value in values {
                    let value = self.annotation(None, value);
                    message.message(at::ARRAY_VALUES, &value);
                }
            }
            Value::Named(values) => {
                for (name, value) in values {
                    let value = self.annotation(Some(name), value);
                    message.message(at::DICT_ENTRIES, &value);
                }
            }
        }
        message
    }
}
