//! The visits over HTTP: one server at a time, its clients one after another.
//!
//! The fixtures count what happens to them, so two clients at once would see each other. The
//! server listens once; outlast listens once in front of that URL and once in front of the same
//! server on stdio. A client is first sent straight to the server over HTTP, and then each way.

use anyhow::{Context, Result};

use super::Places;
use super::client::Run;
use super::compare::differences;
use super::endpoint::Endpoint;
use super::matrix::{self, Server, Visit, Way};
use super::tally::{Tally, Verdict};

/// With tasks, clients would be offered more than the server offers; what they see has to be the same.
const AS_IT_IS: [&str; 1] = ["--tasks=false"];

/// What listens while the clients of one server run.
struct Stage<'a> {
    places: &'a Places,
    outlast: Option<&'a str>,
    server: &'static Server,
    direct: Endpoint,
    /// `outlast serve` in front of the server on stdio, and in front of its URL.
    before_stdio: Option<Endpoint>,
    before_url: Option<Endpoint>,
}

/// Makes all visits to one server; their verdicts go to `tally`.
pub fn check_server(visits: &[Visit], places: &Places, outlast: Option<&str>, tally: &Tally) {
    let server = visits[0].pair.server;
    let mut stage = match Stage::set(server, places, outlast) {
        Ok(stage) => stage,
        Err(error) => return tally.add_trouble(&format!("{} over HTTP", server.name), &error),
    };
    for visits in visits.chunk_by(|a, b| a.pair.client.name == b.pair.client.name) {
        stage.check_client(visits, tally);
    }
    if let Err(error) = stage.clear() {
        tally.add_trouble(&format!("{} over HTTP", server.name), &error);
    }
}

impl<'a> Stage<'a> {
    fn set(server: &'static Server, places: &'a Places, outlast: Option<&'a str>) -> Result<Self> {
        let log = places.logs().join(format!("{}-http-server.log", server.name));
        let direct = Endpoint::start(&server.http_command(places), &log).context("the server")?;
        Ok(Self { places, outlast, server, direct, before_stdio: None, before_url: None })
    }

    /// Everything is told to end, in the order in which nobody misses anybody.
    fn clear(self) -> Result<()> {
        for outlast in [self.before_stdio, self.before_url].into_iter().flatten() {
            outlast.stop().context("outlast serve")?;
        }
        self.direct.stop().context("the server")
    }

    /// The visits of one client, each compared with what it sees without outlast.
    fn check_client(&mut self, visits: &[Visit], tally: &Tally) {
        let pair = visits[0].pair;
        let direct = pair.run(self.places, std::slice::from_ref(&self.direct.url), "http-direct");
        let complaints = matrix::unexplained(&pair, true, &direct);
        let is_well = complaints.is_empty();
        if !is_well || self.outlast.is_none() {
            let line = format!("{}, direct {:.1} s", direct.summary(), direct.took.as_secs_f32());
            tally.add(&visits[0].to_string(), if is_well { Ok(line) } else { Err(complaints) });
        }
        if let Some(outlast) = self.outlast.filter(|_| is_well) {
            for visit in visits {
                tally.add(&visit.to_string(), self.check_visit(visit, outlast, &direct));
            }
        }
    }

    fn check_visit(&mut self, visit: &Visit, outlast: &str, direct: &Run) -> Verdict {
        let Visit { pair, way } = visit;
        let (target, log) = self.target(*way, outlast).map_err(|error| vec![format!("{error:#}")])?;
        let through = pair.run(self.places, &target, way.word());
        let mut complaints = differences(&expected(direct, *way), &through);
        if !complaints.is_empty() {
            complaints.extend(log.map(|log| format!("outlast's own words: {log}")));
            return Err(complaints);
        }
        let (before, after) = (direct.took.as_secs_f32(), through.took.as_secs_f32());
        Ok(format!("{}, direct {before:.1} s, through outlast {after:.1} s", direct.summary()))
    }

    /// What the client is given to reach outlast, and where outlast's words are if not with the client's.
    fn target(&mut self, way: Way, outlast: &str) -> Result<(Vec<String>, Option<String>)> {
        let url = self.direct.url.clone();
        let (place, server) = match way {
            Way::Stdio | Way::StdioToHttp => return Ok((vec![outlast.to_owned(), url], None)),
            Way::HttpToStdio => {
                let command = self.server.stdio_command(self.places);
                (&mut self.before_stdio, [vec!["--".to_owned()], command].concat())
            }
            Way::Http => (&mut self.before_url, vec![url]),
        };
        let endpoint = match place {
            Some(endpoint) => endpoint,
            None => {
                let log = format!("{}-{}-outlast.log", self.server.name, way.word());
                place.insert(serve(outlast, &AS_IT_IS, &server, self.places, &log)?)
            }
        };
        Ok((vec![endpoint.url.clone()], Some(endpoint.log().display().to_string())))
    }
}

/// What the client should see; on stdio its last check is about a process, over HTTP about a session.
fn expected(direct: &Run, way: Way) -> Run {
    let mut expected = direct.clone();
    if let Some(close) = expected.outcomes.get_mut("close").filter(|_| way == Way::StdioToHttp) {
        close.detail = "ended by itself".to_owned();
    }
    expected
}

/// Starts `outlast serve` in front of a URL or of `--` and a command.
pub fn serve(
    outlast: &str,
    settings: &[&str],
    server: &[String],
    places: &Places,
    log: &str,
) -> Result<Endpoint> {
    let mut command: Vec<String> = [outlast, "serve", "--listen", "127.0.0.1:0"].map(str::to_owned).to_vec();
    command.extend(settings.iter().map(|word| (*word).to_owned()));
    command.extend_from_slice(server);
    Endpoint::start(&command, &places.logs().join(log)).context("outlast serve")
}
