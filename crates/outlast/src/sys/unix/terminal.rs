//! The size of a terminal.

use nix::libc::{STDOUT_FILENO, TIOCGWINSZ, ioctl, winsize};

/// How many characters a line of the terminal that is our stdout has.
pub fn columns() -> Option<usize> {
    let mut size = winsize { ws_row: 0, ws_col: 0, ws_xpixel: 0, ws_ypixel: 0 };
    // SAFETY: this request writes a `winsize`, and nothing else.
    let answered = unsafe { ioctl(STDOUT_FILENO, TIOCGWINSZ, &raw mut size) } == 0;
    Some(usize::from(size.ws_col)).filter(|columns| answered && *columns > 0)
}
