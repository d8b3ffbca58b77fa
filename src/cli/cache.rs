//! `cache`: what is kept of earlier runs, and an end to it.

use clap::Args;

use super::output::to_stdout;
use super::{ExitStatus, Stop};
use crate::cache::{self, Cache, Kind, Usage};
use crate::error::Error;
use crate::label::visible;

const EXAMPLES: &str = "\
Examples:
  trace-attr cache
  trace-attr cache --clear
  TRACE_ATTR_CACHE_DIR=/fast/disk TRACE_ATTR_CACHE_LIMIT=500MB trace-attr report exported/

Kept are exports of bundles, and the tables of large inputs once they were read and checked. An
entry counts only as long as its input, and the program, are what they were; the ones that were
not used for longest go first.";

/// Arguments of `cache`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct CacheArgs {
    /// Remove everything that is kept
    #[arg(long)]
    clear: bool,
}

pub(super) fn run(args: &CacheArgs) -> Result<ExitStatus, Stop> {
    let Some(cache) = Cache::of_user()? else {
        to_stdout(ExitStatus::Done, |out| {
            out.write_all(b"no cache: this user has no cache folder\n")
        })?;
        return Ok(ExitStatus::Done);
    };
    let text = if args.clear {
        let removed = cache
            .clear()
            .map_err(|error| Error::io("clear the cache", error).with_origin(cache.folder().display().to_string()))?;
        format!("removed: {}\n", told(removed))
    } else {
        shown(&cache)
    };
    to_stdout(ExitStatus::Done, |out| out.write_all(text.as_bytes()))?;
    Ok(ExitStatus::Done)
}

fn shown(cache: &Cache) -> String {
    let mut text = format!("folder   {}\n", visible(&cache.folder().display().to_string()));
    for kind in Kind::ALL {
        text += &format!("{:<8} {}\n", kind.name(), told(cache.usage(kind)));
    }
    text + &format!("limit    {} ({})\n", size(cache.limit()), cache::LIMIT)
}

fn told(usage: Usage) -> String {
    match usage.entries {
        0 => "nothing".to_owned(),
        1 => format!("1 entry, {}", size(usage.bytes)),
        entries => format!("{entries} entries, {}", size(usage.bytes)),
    }
}

/// `512 B`, `31.4 MB`: three digits are enough to see what takes the room.
fn size(bytes: u64) -> String {
    let mut unit = 1_u64;
    let mut name = "B";
    for (larger, its_name) in [(1_000, "kB"), (1_000_000, "MB"), (1_000_000_000, "GB")] {
        if bytes >= larger {
            (unit, name) = (larger, its_name);
        }
    }
    let tenths = u128::from(bytes) * 10 / u128::from(unit);
    if unit == 1 || tenths >= 1000 {
        format!("{} {name}", tenths / 10)
    } else {
        format!("{}.{} {name}", tenths / 10, tenths % 10)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_the_unit_that_shows_them() {
        let told = [0, 999, 1_000, 31_450_000, 8 << 30, 250_000_000].map(size);
        assert_eq!(told, ["0 B", "999 B", "1.0 kB", "31.4 MB", "8.5 GB", "250 MB"]);
    }
}
