//! The binary: everything is in the library's `cli`.

fn main() -> std::process::ExitCode {
    trace_attr::cli::main()
}
