//! The ways to install, as command lines. `@home`, `@packages` and `@tools` are folders.

/// One way.
pub struct Way {
    pub name: &'static str,
    /// What a person would type.
    pub shown: &'static str,
    pub install: &'static [&'static str],
    /// Starts what was installed.
    pub command: &'static str,
    pub remove: &'static [&'static str],
    /// Needs the registry on loopback.
    pub registry: bool,
    /// Nothing of a package manager runs before the program does, so it has to start at once.
    pub quick: bool,
}

const NPM: Way = Way {
    name: "npm",
    shown: "npm install -g outlast",
    install: &["npm install --global --prefix @home/npm outlast"],
    command: "@home/npm/bin/outlast",
    remove: &["npm uninstall --global --prefix @home/npm outlast"],
    registry: true,
    quick: true,
};

pub fn ways() -> Vec<Way> {
    vec![
        NPM,
        Way {
            name: "npm-local",
            shown: "npm install outlast",
            install: &["npm install --prefix @home/project outlast"],
            command: "@home/project/node_modules/.bin/outlast",
            remove: &["npm uninstall --prefix @home/project outlast"],
            ..NPM
        },
        Way {
            name: "npx",
            shown: "npx -y outlast",
            install: &[],
            command: "npx -y outlast",
            remove: &[],
            quick: false,
            ..NPM
        },
        Way {
            name: "pnpm",
            shown: "pnpm add outlast",
            install: &[
                "mkdir -p @home/project",
                "node @tools/node/node_modules/pnpm/bin/pnpm.cjs --dir @home/project add outlast",
            ],
            command: "@home/project/node_modules/.bin/outlast",
            remove: &["node @tools/node/node_modules/pnpm/bin/pnpm.cjs --dir @home/project remove outlast"],
            ..NPM
        },
        Way {
            name: "yarn",
            shown: "yarn add outlast",
            install: &[
                "mkdir -p @home/project",
                "node @tools/node/node_modules/yarn/bin/yarn.js --cwd @home/project --non-interactive add outlast",
            ],
            command: "@home/project/node_modules/.bin/outlast",
            remove: &["node @tools/node/node_modules/yarn/bin/yarn.js --cwd @home/project remove outlast"],
            ..NPM
        },
        Way {
            name: "pip",
            shown: "pip install outlast",
            install: &[
                "python3 -m venv @home/venv",
                "@home/venv/bin/pip install --no-index --find-links @packages outlast",
            ],
            command: "@home/venv/bin/outlast",
            remove: &["@home/venv/bin/pip uninstall --yes outlast"],
            registry: false,
            ..NPM
        },
        Way {
            name: "uv",
            shown: "uv tool install outlast",
            install: &["@tools/python/bin/uv tool install --no-index --find-links @packages outlast"],
            command: "@home/.local/bin/outlast",
            remove: &["@tools/python/bin/uv tool uninstall outlast"],
            registry: false,
            ..NPM
        },
        Way {
            name: "uvx",
            shown: "uvx outlast",
            install: &[],
            command: "@tools/python/bin/uvx --no-index --find-links @packages outlast",
            remove: &[],
            registry: false,
            quick: false,
        },
        Way {
            name: "deb",
            shown: "dpkg --install outlast_0.1.0-1_amd64.deb",
            install: &[
                "mkdir -p @home/root/var/lib/dpkg/info @home/root/var/lib/dpkg/updates",
                "sh -c ': > @home/root/var/lib/dpkg/status'",
                // The root is empty, also of the C library that the package asks for.
                "sh -c 'dpkg --root=@home/root --force-depends --install @packages/*_amd64.deb'",
            ],
            command: "@home/root/usr/bin/outlast",
            remove: &["dpkg --root=@home/root --purge outlast"],
            registry: false,
            ..NPM
        },
        Way {
            name: "archive",
            shown: "tar -xzf outlast-0.1.0-x86_64-unknown-linux-gnu.tar.gz",
            install: &[
                "mkdir -p @home/opt",
                "sh -c 'tar -xzf @packages/outlast-*-x86_64-unknown-linux-gnu.tar.gz -C @home/opt'",
            ],
            command: "@home/opt/outlast",
            remove: &["rm -r @home/opt"],
            registry: false,
            ..NPM
        },
    ]
}
