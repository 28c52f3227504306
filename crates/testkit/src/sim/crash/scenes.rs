//! Who calls what: scenes to be played at every point, and scenes from a seed.

use super::clients::{Client, Face};
use super::receiver::NAME;
use super::servers::PATIENCE;
use super::{Crashes, Fate, World};
use crate::sim::Outcome;
use crate::sim::rng::Rng;
use outlast_engine::callback::When;
use outlast_engine::profile::Profiles;
use outlast_engine::settings::{Glob, Key};
use outlast_engine::{ClientRule, Config, Manner, Restart, ServerConfig, Transport};
use std::sync::Arc;
use std::time::Duration;

/// A client that hands off after nine tenths of this.
const HASTY: &str = "hasty=cap:1s,progress:no,measured:2026-11-18";

/// One call of a scene: its tool, whether it has a key, whether it is cancelled.
type Call = (&'static str, bool, bool);

/// Clients, and where they call.
#[derive(Clone, Debug)]
pub struct Scene {
    manner: Manner,
    transport: Transport,
    /// Servers speak of what others were asked.
    pub(super) forges: bool,
    /// Clients want to be called back.
    called: bool,
    /// The era, the face, who, and the calls of each client.
    cast: Vec<(bool, Face, Option<&'static str>, Vec<Call>)>,
}

impl Scene {
    fn of(modern: bool, face: Face, call: Call) -> Scene {
        let cast = vec![(modern, face, Some("alice"), vec![call])];
        Scene { manner: Manner::Serve, transport: Transport::Process, forges: false, called: false, cast }
    }

    fn wrapped(self) -> Scene {
        Scene { manner: Manner::Wrap, ..self }
    }

    fn called(self) -> Scene {
        Scene { called: true, ..self }
    }

    fn remote(self) -> Scene {
        Scene { transport: Transport::Http, ..self }
    }

    /// Every face of a ticket, with what matters for it.
    pub fn all() -> Vec<Scene> {
        let faces = [
            (false, Face::LegacyTask),
            (true, Face::ModernTask),
            (false, Face::Resume),
            (false, Face::HandOff),
            (true, Face::HandOff),
            (false, Face::Plain),
            (true, Face::Plain),
        ];
        let mut scenes = Vec::new();
        for (modern, face) in faces {
            let of = |tool, key, cancels| Scene::of(modern, face, (tool, key, cancels));
            for tool in ["safe_slow", "act_slow"] {
                scenes.extend([of(tool, false, false), of(tool, true, false)]);
            }
            scenes.extend([of("act_even", true, false), of("act_slow", true, false).remote()]);
            scenes.extend([of("act_slow", false, false).wrapped(), of("safe_slow", true, false).wrapped()]);
            scenes.extend([of("held_slow", false, false), of("held_quick", true, false).wrapped()]);
            if face != Face::Plain {
                scenes.extend([of("act_slow", false, true), of("act_asks", false, false)]);
                scenes.extend([of("act_slow", true, false).called(), of("held_slow", false, false).called()]);
            }
        }
        scenes
    }

    fn drawn(rng: &mut Rng) -> Scene {
        let manner = if rng.chance(25) { Manner::Wrap } else { Manner::Serve };
        let transport = if rng.chance(50) { Transport::Process } else { Transport::Http };
        let clients = if manner == Manner::Wrap { 1 } else { rng.below(4) + 1 };
        let cast = (0..clients).map(|_| {
            let face =
                [Face::Plain, Face::LegacyTask, Face::ModernTask, Face::Resume, Face::HandOff][rng.below(5)];
            let modern = match face {
                Face::ModernTask => true,
                Face::LegacyTask | Face::Resume => false,
                Face::Plain | Face::HandOff => rng.chance(50),
            };
            // Without a name a legacy client cannot come back after its session.
            let who = [Some("alice"), Some("bob"), None];
            let principal = who[rng.below(if modern { 3 } else { 2 })];
            let calls = (0..=rng.below(3)).map(|_| Scene::call(rng)).collect();
            (modern, face, principal, calls)
        });
        let cast = cast.collect();
        Scene { manner, transport, forges: rng.chance(30), called: false, cast }
    }

    /// The same, where a person must approve what acts.
    fn held(mut self) -> Scene {
        for (tool, _, _) in self.cast.iter_mut().flat_map(|(.., calls)| calls) {
            *tool = match *tool {
                "act_slow" => "held_slow",
                "act_quick" | "act_errs" => "held_quick",
                "act_even" => "held_even",
                other => other,
            };
        }
        self
    }

    fn call(rng: &mut Rng) -> Call {
        let tool = match rng.below(16) {
            0..3 => "safe_slow",
            3..6 => "act_slow",
            6 => "safe_quick",
            7 => "act_quick",
            8..10 => "act_even",
            10 => "safe_even",
            11 => "act_fails",
            12 => "act_errs",
            13 => "safe_asks",
            14 => "act_asks",
            _ => "act_dies",
        };
        (tool, rng.chance(50), rng.chance(15))
    }

    pub(super) fn clients(&self) -> Vec<Client> {
        let client = |(index, (modern, face, principal, calls)): (usize, &(_, _, _, Vec<Call>))| {
            let client = Client::new(index, *modern, *face, *principal);
            calls.iter().fold(client, |client, (tool, key, cancels)| client.calls(tool, *key, *cancels))
        };
        self.cast.iter().enumerate().map(client).collect()
    }

    pub(super) fn config(&self) -> Config {
        let server = ServerConfig {
            name: "sim".into(),
            transport: self.transport,
            restart: Restart::OnCrash,
            restart_backoff: Duration::from_millis(10),
            ..ServerConfig::default()
        };
        let mut config = Config {
            manner: self.manner,
            tasks: true,
            resumable: true,
            task_after: PATIENCE,
            profiles: Profiles { table: HASTY.into(), ..Profiles::default() },
            resume_wait: Duration::from_secs(60),
            session_idle: Duration::from_secs(60),
            replicated: self.manner == Manner::Serve,
            drain: Duration::from_secs(1),
            ..server.into()
        };
        config.is_called("sim".into());
        config.rules_mut().add(Key::Tool, "safe_*=repeatable:true,retries:3", "--tool").expect("a rule");
        config.rules_mut().add(Key::Tool, "held_*=hold:true,hold-timeout:40s", "--tool").expect("a rule");
        if self.called {
            config.callbacks.insert(NAME.into(), When::Always);
            config.clients = vec![Arc::new(ClientRule {
                glob: Glob::new("*").expect("a glob"),
                cap: None,
                hand_off: None,
                servers: None,
                expose: None,
                callback: Some(NAME.into()),
                source: "".into(),
            })];
        }
        if self.cast.len().is_multiple_of(2) {
            config.rules_mut().add(Key::Tool, "*=join-repeats:2s", "--tool").expect("a rule");
        }
        config
    }
}

/// Says where a world was when it broke.
struct Place(String);

impl Drop for Place {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("{}", self.0);
        }
    }
}

/// Plays a scene once for every point between its call and its answer, ending the process there in every
/// way; gives how often that was. Panics if an invariant breaks.
pub fn at_every_point(scene: &Scene) -> u64 {
    let mut played = 0;
    for fate in Fate::ALL {
        for point in 1.. {
            let _place = Place(format!("at point {point}, {fate:?}, of {scene:?}"));
            let mut world = World::new(scene, 1, Crashes::At(point, fate));
            world.live();
            if world.finish().crashes == 0 {
                break;
            }
            played += 1;
        }
    }
    played
}

/// Plays the world of a seed, in which processes end at random.
pub fn run(seed: u64) -> Outcome {
    let mut rng = Rng::new(seed);
    let scene = Scene::drawn(&mut rng);
    // The worlds without persons stay what they were.
    let scene = if seed % 3 == 1 { scene.held() } else { scene };
    let scene = if seed % 4 == 3 { scene.called() } else { scene };
    let crashes = rng.between(1, 4) as u32;
    let _place = Place(format!("{scene:?}"));
    let mut world = World::new(&scene, seed, Crashes::AnyTime(crashes));
    world.live();
    world.finish()
}
