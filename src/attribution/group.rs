//! How a submission gets its key.

use super::Group;
use crate::error::Result;
use crate::model::Trace;

/// Duration bands: sorted edges in ns and the names they give.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Buckets {
    /// Lower edges of all but the first bucket, ascending, inclusive.
    pub edges: Vec<u64>,
    /// One more than edges.
    pub names: Vec<String>,
}

impl Default for Buckets {
    fn default() -> Self {
        Buckets {
            edges: Vec::new(),
            names: Vec::new(),
        }
    }
}

impl Buckets {
    /// Edges as a user writes them: `2us,8us,500ns,1ms`.
    pub fn parse(_text: &str) -> Result<Self> {
        Ok(Buckets::default())
    }

    /// Edges in ns, in any order.
    pub fn from_edges(_edges: Vec<u64>) -> Result<Self> {
        Ok(Buckets::default())
    }
}

/// A grouping.
#[derive(Debug, Clone)]
pub enum GroupBy {
    /// By duration.
    Bucket(Buckets),
    /// By encoder family.
    Encoder,
    /// By phase.
    Phase,
    /// By channel.
    Channel,
}

/// The groups of one grouping.
#[derive(Debug, Clone, PartialEq)]
pub struct Attribution {
    /// Buckets in edge order; the others by total, descending, then key.
    pub groups: Vec<Group>,
}

/// Groups the counted submissions of a trace.
pub fn attribute(_trace: &Trace, _by: &GroupBy) -> Attribution {
    Attribution { groups: Vec::new() }
}
