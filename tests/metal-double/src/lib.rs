//! A stand-in for the Objective-C runtime, Foundation and Metal: as much of each as the Metal backend calls.
//!
//! It says what we believe Metal does: encodings of methods, order of calls, rules of ownership. Running the backend against
//! it shows that memory is managed, calls come in order, errors come through and the arithmetic is right. It never shows that
//! a number is right on a GPU: it compiles and runs no MSL, and its times are made up.
//!
//! It is strict on purpose: what Metal forgives, or only logs with its validation layer, is a panic here or is counted
//! against the test. A panic on the thread of the GPU ends the process, so that no test passes over it.

#![allow(non_upper_case_globals, non_snake_case)]

pub mod blocks;
pub mod clock;
pub mod foundation;
pub mod metal;
pub mod pools;
pub mod runtime;
mod session;

pub use session::{Outcome, Samples, Session, session};
