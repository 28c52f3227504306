//! What the environment and the command line say, over the file: it holds for every server.

use super::{Defined, Gateway};
use crate::config::{environment, take_of_server};
use outlast_engine::settings::{BadValue, Kind, Place, Setting};
use std::sync::Arc;

impl Gateway {
    /// Takes the environment's values, then those of flags.
    pub fn overrule(&mut self, flags: &[(&'static Setting, String)]) -> Result<(), BadValue> {
        let (written, unknown) = environment();
        self.settings.unknown = unknown;
        for (setting, value, name) in &written {
            self.take(setting, value, name).map_err(|error| BadValue(format!("{name}: {error}")))?;
        }
        for (setting, value) in flags {
            let name = format!("--{}", setting.name);
            self.take(setting, value, &name).map_err(|error| BadValue(format!("{name}: {error}")))?;
        }
        Ok(())
    }

    fn take(&mut self, setting: &'static Setting, value: &str, source: &str) -> Result<(), BadValue> {
        let of_servers = setting.kind == Kind::Rules || matches!(setting.place, Place::Call | Place::Server);
        if !of_servers {
            return self.settings.take(setting, value, source);
        }
        self.servers.iter_mut().try_for_each(|server| server.take(setting, value, source))
    }
}

impl Defined {
    fn take(&mut self, setting: &'static Setting, value: &str, source: &str) -> Result<(), BadValue> {
        let rules = Arc::make_mut(&mut self.config.rules);
        if setting.kind == Kind::Rules {
            return rules.add(setting.key, value, source);
        }
        let value = setting.parse(value)?;
        if let Some(value) = take_of_server(&mut self.config, &mut self.remote, setting.key, value) {
            Arc::make_mut(&mut self.config.rules).bare(setting.key, value, source);
        }
        Ok(())
    }
}
