//! x
pub fn run() -> std::io::Result<()> { Ok(()) }
