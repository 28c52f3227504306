//! Connections between processes of one user: named pipes that nobody else may open.

use super::{check, wide};
use std::io;
use std::os::windows::io::AsRawHandle;
use std::path::Path;
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::windows::named_pipe::{ClientOptions, NamedPipeClient, NamedPipeServer, ServerOptions};
use windows_sys::Win32::Foundation::{HANDLE, LocalFree};
use windows_sys::Win32::Security::Authorization::{
    ConvertStringSecurityDescriptorToSecurityDescriptorW, SDDL_REVISION_1,
};
use windows_sys::Win32::Security::{PSECURITY_DESCRIPTOR, SECURITY_ATTRIBUTES};
use windows_sys::Win32::System::Pipes::PeekNamedPipe;

/// A pipe's name is made from the path, and has at most 256 letters.
pub const LONGEST_PATH: usize = 240;

/// All rights for the owner, none for anybody else, and none inherited.
const OWNER_ALONE: &str = "D:P(A;;GA;;;OW)";

/// One connection.
#[derive(Debug)]
pub enum LocalStream {
    Server(NamedPipeServer),
    Client(NamedPipeClient),
}

/// Where processes of this user come in: the end that the next one takes.
#[derive(Debug)]
pub struct LocalListener {
    name: String,
    next: NamedPipeServer,
}

impl LocalListener {
    /// Begins to listen; an error if somebody does already. Must be called inside a runtime.
    pub(super) fn new(path: &Path) -> io::Result<LocalListener> {
        let name = name(path);
        let next = make(&name, true)?;
        Ok(LocalListener { name, next })
    }

    /// The next connection. Others than this user cannot open the pipe.
    pub async fn accept(&mut self) -> io::Result<LocalStream> {
        self.next.connect().await?;
        let next = make(&self.name, false)?;
        Ok(LocalStream::Server(std::mem::replace(&mut self.next, next)))
    }
}

/// Names are one flat list for the whole machine, so the whole path is in it.
fn name(path: &Path) -> String {
    let path: String =
        path.to_string_lossy().chars().map(|c| if c.is_alphanumeric() { c } else { '-' }).collect();
    format!(r"\\.\pipe\outlast-{path}")
}

fn make(name: &str, is_first: bool) -> io::Result<NamedPipeServer> {
    let mut descriptor: PSECURITY_DESCRIPTOR = std::ptr::null_mut();
    // SAFETY: the text ends with a zero; the descriptor is freed below.
    check(unsafe {
        ConvertStringSecurityDescriptorToSecurityDescriptorW(
            wide(OWNER_ALONE).as_ptr(),
            SDDL_REVISION_1,
            &mut descriptor,
            std::ptr::null_mut(),
        )
    })?;
    let mut attributes = SECURITY_ATTRIBUTES {
        nLength: size_of::<SECURITY_ATTRIBUTES>() as u32,
        lpSecurityDescriptor: descriptor,
        bInheritHandle: 0,
    };
    let mut options = ServerOptions::new();
    options.first_pipe_instance(is_first).reject_remote_clients(true);
    // SAFETY: the attributes and their descriptor live until the call returns.
    let made = unsafe { options.create_with_security_attributes_raw(name, (&raw mut attributes).cast()) };
    // SAFETY: it was allocated by the call above, and nobody uses it any more.
    unsafe { LocalFree(descriptor) };
    made
}

/// Listens for this user alone; a file at the path tells that somebody does. Must be called inside a runtime.
pub fn listen(path: &Path) -> io::Result<LocalListener> {
    let listener = LocalListener::new(path)?;
    std::fs::write(path, b"")?;
    Ok(listener)
}

/// Connects, if somebody listens there.
pub async fn connect(path: &Path) -> io::Result<LocalStream> {
    connect_now(path)
}

/// The same at once. Must be called inside a runtime.
pub fn connect_now(path: &Path) -> io::Result<LocalStream> {
    ClientOptions::new().open(name(path)).map(LocalStream::Client)
}

/// Looks at what came without taking it.
pub fn peek(stream: &LocalStream) -> io::Result<usize> {
    let pipe: HANDLE = match stream {
        LocalStream::Server(pipe) => pipe.as_raw_handle(),
        LocalStream::Client(pipe) => pipe.as_raw_handle(),
    };
    let (mut count, none) = (0, std::ptr::null_mut());
    // SAFETY: the handle is open; only the number of bytes is asked for.
    check(unsafe { PeekNamedPipe(pipe, none, 0, none.cast(), &mut count, none.cast()) })?;
    if count == 0 { Err(io::ErrorKind::WouldBlock.into()) } else { Ok(count as usize) }
}

impl AsyncRead for LocalStream {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, to: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            LocalStream::Server(io) => Pin::new(io).poll_read(cx, to),
            LocalStream::Client(io) => Pin::new(io).poll_read(cx, to),
        }
    }
}

impl AsyncWrite for LocalStream {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            LocalStream::Server(io) => Pin::new(io).poll_write(cx, bytes),
            LocalStream::Client(io) => Pin::new(io).poll_write(cx, bytes),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            LocalStream::Server(io) => Pin::new(io).poll_flush(cx),
            LocalStream::Client(io) => Pin::new(io).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            LocalStream::Server(io) => Pin::new(io).poll_shutdown(cx),
            LocalStream::Client(io) => Pin::new(io).poll_shutdown(cx),
        }
    }
}
