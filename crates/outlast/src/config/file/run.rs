//! What a file becomes when it is run: the engine's configuration, and how each server is reached.

use super::{Defined, Gateway, TargetSpec, TokenRule};
use crate::config::{Settings, any_variable};
use crate::program::{Command, Program};
use crate::server::http::{Options, Remote, parse_header, proxies_of_environment};
use outlast_engine::hash::fingerprint;
use outlast_engine::{Exposure, Rights, ServerConfig};
use std::sync::Arc;

impl Gateway {
    /// The configuration of the engine, and how each server is reached. An error says what cannot be done.
    pub fn assemble(self) -> Result<(Settings, Vec<Program>), String> {
        let Gateway { mut settings, servers, tokens, callbacks, separator, .. } = self;
        settings.engine.separator = separator.into();
        for TokenRule { name, hash, servers, tools, bounds, reach, source } in tokens {
            settings.service.reach.insert(name.clone().into(), reach);
            settings.service.tokens.push((name.clone().into(), hash));
            settings.engine.rights.insert(name.into(), Rights { servers, tools, bounds, source });
        }
        for rule in callbacks {
            settings.engine.callbacks.insert(rule.name.clone(), rule.when);
            settings.callers.add(rule.name.clone(), rule.receiver()?);
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
}

impl Defined {
    fn exposed(self) -> ServerConfig {
        let program = fingerprint(&self.all_of_program());
        let expose = self.expose.unwrap_or_default();
        let aliases = self.aliases.into_iter().map(|(own, public)| (own.into(), public.into())).collect();
        let exposure = Arc::new(Exposure { expose, allow: self.allow, deny: self.deny, aliases });
        ServerConfig { exposure, program, eager: self.eager, source: self.source, ..self.config }
    }

    /// All that decides how it is started or reached: what differs in any of it is another program.
    fn all_of_program(&self) -> Vec<u8> {
        let mut all: Vec<Vec<u8>> = Vec::new();
        let mut add = |bytes: &[u8]| all.push(bytes.to_vec());
        match &self.target {
            TargetSpec::Command { argv, env, cwd } => {
                argv.iter().for_each(|word| add(word.as_encoded_bytes()));
                env.iter().for_each(|(name, value)| {
                    add(&[b"=", name.as_encoded_bytes(), b"=", value.as_encoded_bytes()].concat());
                });
                cwd.iter().for_each(|folder| add(folder.as_os_str().as_encoded_bytes()));
            }
            TargetSpec::Remote { url, headers } => {
                add(url.to_string().as_bytes());
                headers.iter().for_each(|(name, value)| {
                    add(&[name.as_str().as_bytes(), b": ", value.as_bytes()].concat());
                });
                add(format!("{:?}", self.remote).as_bytes());
            }
        }
        // A byte that no text holds, so that two lists with the same letters stay two.
        all.join(&0xff)
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
