//! The clients we know: which files they read, and how those look.
//!
//! docs/install.md says where each place was found written. To add a client, add an item to `CLIENTS`
//! and a pair of files to tests/install/fixtures.

use super::fitting::Unit;
use crate::config;
use std::path::PathBuf;

/// Whose file it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// In the working directory, shared with everyone who works on the project.
    Project,
    /// The person's own.
    User,
}

impl Scope {
    pub fn name(self) -> &'static str {
        match self {
            Scope::Project => "project",
            Scope::User => "user",
        }
    }
}

/// How a file describes servers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// JSON, `mcpServers`.
    McpServers,
    /// The same, and again in every project under `projects`.
    ClaudeUser,
    /// JSON, `servers`.
    Servers,
    /// JSON, `mcp` or `mcp.servers`, program and arguments in one list.
    OpenCode,
    /// TOML, `[mcp_servers.NAME]`.
    Codex,
    /// YAML, `extensions:`.
    Goose,
}

/// Where a path begins.
#[derive(Debug, Clone, Copy)]
enum Base {
    Project,
    Home,
    /// `$XDG_CONFIG_HOME` or `~/.config`, on every system.
    Config,
    /// Where the system keeps what graphical programs store.
    Programs,
    /// `$CLAUDE_CONFIG_DIR`, or the home directory.
    ClaudeCode,
    /// `$CODEX_HOME` or `~/.codex`.
    Codex,
}

/// A client and the files it reads; where there are several, each that exists is meant.
#[derive(Debug)]
pub struct Client {
    pub name: &'static str,
    /// What the table of clients calls it.
    pub called: &'static str,
    /// Where a server's entry says how long the client waits for a tool.
    pub limit: Option<(&'static str, Unit)>,
    places: &'static [(Base, &'static str, Shape)],
}

/// A file that a client reads.
#[derive(Debug)]
pub struct Place {
    pub scope: Scope,
    pub path: PathBuf,
    pub shape: Shape,
}

/// All of them.
pub const CLIENTS: &[Client] = &[
    Client {
        name: "claude-code",
        called: "Claude Code",
        limit: None,
        places: &[
            (Base::Project, ".mcp.json", Shape::McpServers),
            (Base::ClaudeCode, ".claude.json", Shape::ClaudeUser),
        ],
    },
    Client {
        name: "claude-desktop",
        called: "Claude Desktop",
        limit: None,
        places: &[(Base::Programs, "Claude/claude_desktop_config.json", Shape::McpServers)],
    },
    Client {
        name: "cursor",
        called: "Cursor",
        limit: None,
        places: &[
            (Base::Project, ".cursor/mcp.json", Shape::McpServers),
            (Base::Home, ".cursor/mcp.json", Shape::McpServers),
        ],
    },
    Client {
        name: "vscode",
        called: "VS Code",
        limit: None,
        places: &[
            (Base::Project, ".vscode/mcp.json", Shape::Servers),
            (Base::Programs, "Code/User/mcp.json", Shape::Servers),
            (Base::Programs, "Code - Insiders/User/mcp.json", Shape::Servers),
        ],
    },
    Client {
        name: "codex",
        called: "Codex CLI",
        limit: Some(("tool_timeout_sec", Unit::Seconds)),
        places: &[
            (Base::Project, ".codex/config.toml", Shape::Codex),
            (Base::Codex, "config.toml", Shape::Codex),
        ],
    },
    Client {
        name: "gemini",
        called: "Gemini CLI",
        limit: Some(("timeout", Unit::Milliseconds)),
        places: &[
            (Base::Project, ".gemini/settings.json", Shape::McpServers),
            (Base::Home, ".gemini/settings.json", Shape::McpServers),
        ],
    },
    Client {
        name: "cline",
        called: "Cline CLI",
        limit: Some(("timeout", Unit::Seconds)),
        places: &[
            (Base::Home, ".cline/data/settings/cline_mcp_settings.json", Shape::McpServers),
            (
                Base::Programs,
                "Code/User/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json",
                Shape::McpServers,
            ),
        ],
    },
    Client {
        name: "windsurf",
        called: "Windsurf",
        limit: None,
        places: &[
            (Base::Home, ".codeium/windsurf/mcp_config.json", Shape::McpServers),
            (Base::Config, "devin/mcp_config.json", Shape::McpServers),
        ],
    },
    Client {
        name: "opencode",
        called: "opencode",
        limit: Some(("timeout", Unit::Milliseconds)),
        places: &[
            (Base::Project, "opencode.json", Shape::OpenCode),
            (Base::Project, "opencode.jsonc", Shape::OpenCode),
            (Base::Project, ".opencode/opencode.json", Shape::OpenCode),
            (Base::Project, ".opencode/opencode.jsonc", Shape::OpenCode),
            (Base::Config, "opencode/opencode.json", Shape::OpenCode),
            (Base::Config, "opencode/opencode.jsonc", Shape::OpenCode),
        ],
    },
    Client {
        name: "goose",
        called: "goose",
        limit: Some(("timeout", Unit::Seconds)),
        places: &[(Base::Config, "goose/config.yaml", Shape::Goose)],
    },
];

impl Client {
    /// The client with a name.
    pub fn named(name: &str) -> Option<&'static Client> {
        CLIENTS.iter().find(|client| client.name == name)
    }

    /// Whether the client has files of this scope.
    pub fn has(&self, scope: Scope) -> bool {
        self.places.iter().any(|(base, ..)| base.scope() == scope)
    }

    /// The files of a scope, whether they exist or not. None if there is no home directory.
    pub fn places(&self, scope: Scope) -> Vec<Place> {
        let of = |scope: Scope| {
            let of_scope = self.places.iter().filter(move |(base, ..)| base.scope() == scope);
            let place = move |(base, path, shape): &(Base, &str, Shape)| {
                Some(Place { scope, path: base.path()?.join(path), shape: *shape })
            };
            of_scope.filter_map(place)
        };
        if scope == Scope::User {
            return of(scope).collect();
        }
        // In the home directory the person's own file would look like the project's.
        let real = |place: &Place| std::fs::canonicalize(&place.path).ok();
        let own: Vec<PathBuf> = of(Scope::User).filter_map(|place| real(&place)).collect();
        of(scope).filter(|place| real(place).is_none_or(|path| !own.contains(&path))).collect()
    }
}

impl Base {
    fn scope(self) -> Scope {
        if matches!(self, Base::Project) { Scope::Project } else { Scope::User }
    }

    fn path(self) -> Option<PathBuf> {
        let home = |path: &str| config::home().map(|home| home.join(path));
        match self {
            Base::Project => Some(PathBuf::new()),
            Base::Home => config::home(),
            Base::Config => config::directory("XDG_CONFIG_HOME").or_else(|| home(".config")),
            Base::Programs if cfg!(target_os = "macos") => home("Library/Application Support"),
            Base::Programs => Base::Config.path(),
            Base::ClaudeCode => config::directory("CLAUDE_CONFIG_DIR").or_else(config::home),
            Base::Codex => config::directory("CODEX_HOME").or_else(|| home(".codex")),
        }
    }
}
