//! objc2 asks the linker for `libobjc` and `libgnustep-base`. The double defines their symbols itself, so both names are
//! met by empty archives.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let out = std::env::var("OUT_DIR").expect("cargo sets OUT_DIR");
    for library in ["objc", "gnustep-base"] {
        std::fs::write(format!("{out}/lib{library}.a"), "!<arch>\n").expect("OUT_DIR is writable");
    }
    println!("cargo:rustc-link-search=native={out}");
}
