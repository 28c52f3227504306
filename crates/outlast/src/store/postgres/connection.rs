//! One connection to the database: made, used, and given up.
//!
//! A statement is prepared once on a connection that is ours alone. Behind a pool that gives each transaction another
//! connection (PgBouncer in transaction mode) nothing may be prepared: what one process prepared, another would run.
//! So a connection first shows whether it is our own: it carries a setting of ours ([`OURS`]), which no pool passes on.

use super::error::{Failure, Shown};
use super::place::{Database, Reach};
use super::statement::Statement;
use crate::server::http::tcp;
use crate::server::http::tls::Tls;
use std::collections::HashMap;
use std::future::{Future, poll_fn};
use std::io;
use std::pin::Pin;
use std::sync::{Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_postgres::tls::{ChannelBinding, NoTls, TlsConnect, TlsStream};
use tokio_postgres::{AsyncMessage, Client, Row};

/// How long a connection may take to make.
const CONNECT: Duration = Duration::from_secs(5);

/// How long a statement may take: the database is as good as away after that.
const STATEMENT: Duration = Duration::from_secs(10);

/// What a connection carries that is ours alone.
const OURS: &str = "-c outlast.own=yes";

/// The way to whoever wants to hear what the database says unasked.
pub type Heard = tokio::sync::mpsc::Sender<String>;

/// Something that bytes go through.
trait Io: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Io for T {}

/// A connection. Dropping it closes it.
pub struct Connection {
    client: Client,
    shown: Shown,
    /// It is ours alone.
    pub own: bool,
    prepared: Mutex<HashMap<&'static str, tokio_postgres::Statement>>,
    driver: JoinHandle<()>,
}

impl std::fmt::Debug for Connection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Connection({})", self.shown)
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.driver.abort();
    }
}

impl Connection {
    /// Connects to the first host that lets us in.
    pub async fn open(database: &Database) -> Result<Connection, Failure> {
        Connection::open_with(database, None).await
    }

    /// The same; what the database says unasked is passed on, as long as there is room.
    pub async fn open_to_hear(database: &Database, heard: Heard) -> Result<Connection, Failure> {
        Connection::open_with(database, Some(heard)).await
    }

    async fn open_with(database: &Database, heard: Option<Heard>) -> Result<Connection, Failure> {
        let shown = database.shown();
        let mut last = None;
        for reach in database.hosts() {
            match timeout(CONNECT, Connection::to(database, reach, &heard)).await {
                Ok(Ok(connection)) => return Ok(connection),
                Ok(Err(why)) => last = last.or(Some(why)),
                Err(_) => last = last.or(Some(shown.unreachable("no answer within 5 s"))),
            }
        }
        Err(last.unwrap_or_else(|| shown.unreachable("it has no host")))
    }

    async fn to(database: &Database, reach: &Reach, heard: &Option<Heard>) -> Result<Connection, Failure> {
        match Connection::attempt(database, reach, true, heard.clone()).await {
            // A pool may refuse what it cannot pass on.
            Err(Failure::Away(why)) if why.contains("startup parameter") => {
                Connection::attempt(database, reach, false, heard.clone()).await
            }
            other => other,
        }
    }

    async fn attempt(
        database: &Database,
        reach: &Reach,
        marked: bool,
        heard: Option<Heard>,
    ) -> Result<Connection, Failure> {
        let shown = database.shown();
        let (stream, tls): (Box<dyn Io>, Option<&Tls>) = match reach {
            Reach::Tcp(host, tls) => {
                let stream = tcp::connect(host).await.map_err(|why| shown.unreachable(&why))?;
                (Box::new(stream), tls.as_ref())
            }
            Reach::Local(path) => {
                let stream = crate::sys::database::connect(path).await;
                let words = crate::server::http::words::of_io;
                (Box::new(stream.map_err(|error| shown.unreachable(&words(&error)))?), None)
            }
        };
        let mut config = database.config(tls.is_some());
        if marked {
            let theirs = config.get_options().map(|options| format!("{options} ")).unwrap_or_default();
            config.options(format!("{theirs}{OURS}"));
        }
        let (client, driver) = match tls {
            Some(tls) => {
                let secured = Secure(tls);
                let made =
                    config.connect_raw(stream, secured).await.map_err(|error| of_tls(shown, &error))?;
                (made.0, tokio::spawn(drive(made.1, heard)))
            }
            None => {
                let made = config.connect_raw(stream, NoTls).await.map_err(|error| shown.of(&error))?;
                (made.0, tokio::spawn(drive(made.1, heard)))
            }
        };
        let mut connection =
            Connection { client, shown: shown.clone(), own: false, prepared: Mutex::default(), driver };
        connection.own = connection.is_own().await?;
        Ok(connection)
    }

    async fn is_own(&self) -> Result<bool, Failure> {
        let row = self.one(&Statement::new("SELECT current_setting('outlast.own', true) = 'yes'")).await?;
        Ok(row.get::<_, Option<bool>>(0).unwrap_or(false))
    }

    pub fn place(&self) -> &Shown {
        &self.shown
    }

    pub fn is_closed(&self) -> bool {
        self.client.is_closed()
    }

    /// Makes sure that these can be sent without a question before them, so that they leave in their order.
    pub async fn prepare(&self, statements: &[&Statement<'_>]) -> Result<(), Failure> {
        if !self.own {
            return Ok(());
        }
        for statement in statements {
            if !self.prepared().contains_key(statement.text) {
                let types = statement.types();
                let made = self.in_time(self.client.prepare_typed(statement.text, &types)).await?;
                self.prepared().insert(statement.text, made);
            }
        }
        Ok(())
    }

    fn prepared(&self) -> std::sync::MutexGuard<'_, HashMap<&'static str, tokio_postgres::Statement>> {
        self.prepared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What a statement gives. It leaves when this is first polled, if it was prepared.
    pub async fn rows(&self, statement: &Statement<'_>) -> Result<Vec<Row>, Failure> {
        if !self.own {
            return self.in_time(self.client.query_typed(statement.text, &statement.typed())).await;
        }
        let known = self.prepared().get(statement.text).cloned();
        let made = match known {
            Some(made) => made,
            None => {
                self.prepare(&[statement]).await?;
                return Box::pin(self.rows(statement)).await;
            }
        };
        self.in_time(self.client.query(&made, &statement.values())).await
    }

    pub async fn maybe(&self, statement: &Statement<'_>) -> Result<Option<Row>, Failure> {
        Ok(self.rows(statement).await?.into_iter().next())
    }

    /// The one row that there always is.
    pub async fn one(&self, statement: &Statement<'_>) -> Result<Row, Failure> {
        let row = self.maybe(statement).await?;
        row.ok_or_else(|| Failure::Broken(format!("{} gave no row where there is always one", self.shown)))
    }

    /// Statements without values.
    pub async fn run(&self, text: &str) -> Result<(), Failure> {
        self.in_time(self.client.batch_execute(text)).await
    }

    async fn in_time<T>(
        &self,
        work: impl Future<Output = Result<T, tokio_postgres::Error>>,
    ) -> Result<T, Failure> {
        match timeout(STATEMENT, work).await {
            Ok(done) => done.map_err(|error| self.shown.of(&error)),
            Err(_) => Err(Failure::Away(format!("{} does not answer within 10 s", self.shown))),
        }
    }
}

async fn drive<S, T>(mut connection: tokio_postgres::Connection<S, T>, heard: Option<Heard>)
where
    S: AsyncRead + AsyncWrite + Unpin,
    T: AsyncRead + AsyncWrite + Unpin,
{
    // Whoever waits for a statement hears why it ends.
    while let Some(Ok(said)) = poll_fn(|context| connection.poll_message(context)).await {
        if let (AsyncMessage::Notification(said), Some(heard)) = (said, &heard) {
            // One that finds no room is lost.
            let _ = heard.try_send(said.payload().to_owned());
        }
    }
}

/// What TLS says stands below what the driver says.
fn of_tls(shown: &Shown, error: &tokio_postgres::Error) -> Failure {
    let cause = std::error::Error::source(error);
    match cause.and_then(|cause| cause.downcast_ref::<Against>()) {
        Some(Against(why)) => shown.refused(why),
        None if cause.is_some_and(|cause| cause.to_string().contains("does not support TLS")) => {
            shown.refused("it does not speak TLS; write sslmode=disable in a network that you trust")
        }
        None => shown.of(error),
    }
}

/// Why a certificate is not accepted.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct Against(String);

/// TLS for one connection.
struct Secure<'a>(&'a Tls);

/// A stream with TLS.
struct Secured(tokio_rustls::client::TlsStream<Box<dyn Io>>);

impl<'a> TlsConnect<Box<dyn Io>> for Secure<'a> {
    type Stream = Secured;
    type Error = Against;
    type Future = Pin<Box<dyn Future<Output = Result<Secured, Against>> + Send + 'a>>;

    fn connect(self, stream: Box<dyn Io>) -> Self::Future {
        Box::pin(async move { self.0.handshake(stream).await.map(Secured).map_err(Against) })
    }
}

impl TlsStream for Secured {
    fn channel_binding(&self) -> ChannelBinding {
        ChannelBinding::none()
    }
}

impl AsyncRead for Secured {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(context, buffer)
    }
}

impl AsyncWrite for Secured {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(context)
    }
}
