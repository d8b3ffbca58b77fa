//! Xcode's GPU capture around a profile, on the stand-in: refused with the remedy, or written; never left running.

mod support;

use metal_double::session;
use trace_attr::live::metal::Metal;
use trace_attr::live::{self, ProfileOptions};

fn capturing(path: &std::path::Path) -> ProfileOptions {
    ProfileOptions {
        capture: Some(path.to_owned()),
        ..ProfileOptions::default()
    }
}

#[test]
fn a_capture_lasts_as_long_as_its_profile() {
    let session = session();
    session.with_capture();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.gputrace");
    {
        let metal = Metal::open().unwrap();
        assert!(metal.supports_capture());
        let (inside, profile) = live::profile_with(&capturing(&path), |_| session.is_capturing()).unwrap();
        assert!(inside && !session.is_capturing());
        assert!(path.exists(), "written");
        assert!(profile.captured(), "its times are not those of a run without");
    }
    session.end();
}

#[test]
fn a_capture_is_stopped_when_the_program_panics() {
    let session = session();
    session.with_capture();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.gputrace");
    {
        let _metal = Metal::open().unwrap();
        let panicked = std::panic::catch_unwind(|| live::profile_with(&capturing(&path), |_| panic!("in the engine")));
        assert!(panicked.is_err());
        assert!(path.exists());
    }
    session.end();
}

#[test]
fn a_capture_that_cannot_be_is_refused_with_the_remedy() {
    let session = session();
    let folder = tempfile::tempdir().unwrap();
    {
        let metal = Metal::open().unwrap();
        assert!(!metal.supports_capture());
        let refused = |path: &str| {
            let path = folder.path().join(path);
            let error = live::profile_with(&capturing(&path), |_| ()).unwrap_err();
            (
                error.to_string().replace(&folder.path().display().to_string(), "DIR"),
                error.help().unwrap_or("").to_owned(),
            )
        };
        let (error, help) = refused("run.gputrace");
        assert_eq!(error, "GPU capture is off in this process");
        assert_eq!(help, "start the program with MTL_CAPTURE_ENABLED=1 in its environment");

        session.with_capture();
        let (error, _) = refused("run.trace");
        assert_eq!(
            error,
            "`DIR/run.trace` is no name for a GPU capture: it must end in .gputrace"
        );
        let (error, _) = refused("no/folder/run.gputrace");
        assert_eq!(
            error,
            "could not capture to `DIR/no/folder/run.gputrace`: Output URL cannot be written. (MTLCaptureError 3)"
        );
        std::fs::create_dir(folder.path().join("run.gputrace")).unwrap();
        let (error, help) = refused("run.gputrace");
        assert_eq!(
            error,
            "`DIR/run.gputrace` exists already, and Metal writes a capture to a new path only"
        );
        assert_eq!(help, "remove it, or choose another name");

        let outer = folder.path().join("outer.gputrace");
        let (inner, _) = live::profile_with(&capturing(&outer), |_| refused("inner.gputrace")).unwrap();
        assert_eq!(
            inner.0,
            "could not capture to `DIR/inner.gputrace`: Already capturing. (MTLCaptureError 2)"
        );
    }
    session.end();
}
