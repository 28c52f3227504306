//! Who calls us.

pub mod stdio;
