//! What a file becomes when it is run: the engine's configuration, and how each server is reached.

use super::{Defined, Gateway, TargetSpec, TokenRule};
use crate::config::{Settings, any_variable};
use crate::program::{Command, Program};
use crate::server::http::{Options, Remote, parse_header, proxies_of_environment};
use outlast_engine::{Exposure, Rights, ServerConfig};
use std::sync::Arc;

impl Gateway {
    /// The configuration of the engine, and how each server is reached. An error says what cannot be done.
    pub fn assemble(self) -> Result<(Settings, Vec<Program>), String> {
        self.promises_only_what_is_kept()?;
        let Gateway { mut settings, servers, tokens, separator, .. } = self;
        settings.engine.separator = separator.into();
        for TokenRule { name, hash, servers, tools, source } in tokens {
            settings.service.tokens.push((name.clone().into(), hash));
            settings.engine.rights.insert(name.into(), Rights { servers, tools, source });
        }
        let (mut configs, mut programs) = (Vec::new(), Vec::new());
        for server in servers.into_iter().filter(|server| !server.disabled) {
            programs.push(server.program(settings.engine.max_message)?);
            configs.push(Arc::new(server.exposed()));
        }
        let mut configs = configs.into_iter();
        let first =
            configs.next().ok_or("the file names no server: write [servers.NAME] with a command or a url")?;
        settings.engine.server = first;
        settings.engine.others = configs.collect();
        Ok((settings, programs))
    }

    /// What the file may say already and nothing acts on yet is refused: a limit that is not kept is worse than none.
    fn promises_only_what_is_kept(&self) -> Result<(), String> {
        match self.servers.iter().find(|server| server.eager) {
            Some(Defined { source, .. }) => Err(format!(
                "start = \"eager\" ({source}) is checked and explained, but not acted on yet; leave it out"
            )),
            None => Ok(()),
        }
    }
}

impl Defined {
    fn exposed(self) -> ServerConfig {
        let expose = self.expose.unwrap_or_default();
        let aliases = self.aliases.into_iter().map(|(own, public)| (own.into(), public.into())).collect();
        let exposure = Arc::new(Exposure { expose, allow: self.allow, deny: self.deny, aliases });
        ServerConfig { exposure, ..self.config }
    }

    fn program(&self, max_message: usize) -> Result<Program, String> {
        let (url, headers) = match self.target.clone() {
            TargetSpec::Command { argv, env, cwd } => {
                return Ok(Program::Command(Command { words: argv, variables: env, directory: cwd }));
            }
            TargetSpec::Remote { url, headers } => (url, headers),
        };
        let proxies = proxies_of_environment(&url, any_variable)?;
        let written = self.remote.headers.iter().map(|text| parse_header(text, crate::config::variable));
        let options = Options {
            url,
            headers: headers.into_iter().map(Ok).chain(written).collect::<Result<_, String>>()?,
            ca_file: self.remote.ca_file.clone(),
            proxies,
            way: None,
            connect: self.remote.connect,
            pool_idle: self.remote.pool_idle,
            pool_max_idle: self.remote.pool_max_idle,
            max_message,
        };
        Ok(Program::Remote(Remote::new(options)?))
    }
}
