//! Work for a device that is said in text, so that nobody has to write a program to measure a kernel.
//!
//! ```text
//! expression   2*m*n*k
//! buffer       f32:n:random
//! bench        one kernel, or two against each other
//! file         kernels, buffers and steps in a TOML file
//! run          what a file says, on a device, under a profile
//! doctor       what a device can tell, and whether its times make sense
//! ```
//!
//! Everything runs on any [`Backend`](crate::live::backend::Backend); only opening one needs macOS.

mod buffer;
mod expression;

pub use buffer::{BufferSpec, Element, Fill};
pub use expression::{Expression, Sizes};
