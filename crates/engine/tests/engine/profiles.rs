//! Which rows are a client's, and what follows from them.

use outlast_engine::profile::{self, Effect, Introduction, Profile, Profiles, Verdict, rows, verdict};
use outlast_engine::settings::BadValue;
use outlast_engine::wire::{Scanned, scan};
use std::time::Duration;

const TABLE: &str = "
    # Told apart by their versions.
    hasty*=version:1.2+,cap:60s,progress:no,measured:2026-11-18
    hasty*=version:0.9,cap:30s,progress:no,measured:2026-11-18
    patient=cap:15s,progress:yes,token:yes,total:10m,measured:2026-11-18
    rumoured=cap:60s,progress:no
    # Frameworks that all call themselves the same.
    mcp=version:0.1.0,capabilities:roots,cap:5s,progress:no,measured:2026-11-18
    mcp=version:0.1.0,capabilities:none,token:no,cap:60s,progress:no,measured:2026-11-18
    mcp=version:0.1.0,capabilities:none,token:yes,cap:30s,progress:no,measured:2026-11-18
    mcp=version:0.1.0,capabilities:none,token:no,cap:90s,progress:no,measured:2026-11-18
    # Measured in one program of many.
    framework=shared:yes,cap:60s,progress:no,measured:2026-11-18
";

fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn profiles() -> Profiles {
    Profiles { table: TABLE.into(), ..Profiles::default() }
}

fn client(name: &str, version: &str, capabilities: &str) -> Introduction {
    let [name, version, capabilities] = [name, version, capabilities].map(Into::into);
    Introduction { name, version, revision: "2025-06-18".into(), capabilities }
}

fn says(profiles: &Profiles, name: &str, version: &str, token: bool) -> Verdict {
    verdict(&profiles.of(&client(name, version, "")), Some(token))
}

const fn cap(seconds: u64) -> Verdict {
    Verdict::Does(Effect { cap: Some(Duration::from_secs(seconds)), silence: None })
}

#[test]
fn only_what_was_measured_of_this_version_counts() {
    let table = profiles();
    assert_eq!(says(&table, "hasty-one", "1.2.3", false), cap(60));
    assert_eq!(says(&table, "hasty", "0.9", true), cap(30));
    for (name, version) in [("hasty", "1.1"), ("hasty", "2.0"), ("rumoured", "1"), ("nobody", "1")] {
        assert_eq!(says(&table, name, version, false), Verdict::Unknown, "{name}");
    }
}

#[test]
fn progress_helps_where_it_resets_the_limit_and_up_to_its_total() {
    let kept_patient = Effect { cap: Some(secs(600)), silence: Some(secs(15)) };
    assert_eq!(says(&profiles(), "patient", "", true), Verdict::Does(kept_patient));
    // It was measured with a token: what it does without one is not known.
    assert_eq!(says(&profiles(), "patient", "", false), Verdict::Unknown);
    let written = Profile::parse("x=cap:15s,progress:yes", "--client-profile").unwrap();
    assert_eq!(verdict(&[written], Some(false)), cap(15));
}

#[test]
fn rows_that_cannot_be_told_apart_do_nothing() {
    let of =
        |capabilities, token| verdict(&profiles().of(&client("mcp", "0.1.0", capabilities)), Some(token));
    assert_eq!(of("roots", false), cap(5));
    assert_eq!(of("", true), cap(30));
    assert_eq!(of("", false), Verdict::Unclear);
    assert_eq!(of("sampling", false), Verdict::Unknown);
    assert_eq!(says(&profiles(), "framework", "1", false), Verdict::Unclear);
}

#[test]
fn what_a_person_wrote_wins_then_what_was_learned() {
    let mut all = profiles();
    all.learned.push(Profile::learned("hasty", "1.2.3", secs(120)).unwrap());
    assert_eq!(says(&all, "hasty", "1.2.3", false), cap(120));
    assert_eq!(says(&all, "hasty", "1.2.4", false), cap(60));
    let write = |text: &str| Profile::parse(text, "--client-profile").unwrap();
    all.written = ["hasty=cap:7s,progress:no", "*=cap:9s,progress:no"].map(write).into();
    assert_eq!(says(&all, "hasty", "1.2.3", false), cap(7));
    assert_eq!(says(&all, "anybody", "", false), cap(9));
    all.written = vec![write("hasty=cap:off,progress:no")];
    assert_eq!(says(&all, "hasty", "1.2.3", false), Verdict::Unknown);
}

#[test]
fn a_client_says_who_it_is_in_initialize_and_in_every_modern_request() {
    let read = |text: &str| match scan(bytes::Bytes::copy_from_slice(text.as_bytes())) {
        Ok(Scanned::Message(message)) => Introduction::read(&message),
        other => panic!("{other:?}"),
    };
    let legacy = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{"sampling":{},"roots":{"x":1}},"clientInfo":{"name":"a","version":"1"}}}"#;
    assert_eq!(read(legacy), Some(client("a", "1", "roots+sampling")));
    let modern = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"a"}}}}"#;
    let modern = read(modern).unwrap();
    assert_eq!((&*modern.name, &*modern.version, &*modern.revision), ("a", "", "2026-07-28"));
    assert_eq!(read(r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x"}}"#), None);
}

#[test]
fn a_row_is_written_as_it_is_read() {
    for line in rows(profile::TABLE).chain(rows(TABLE)) {
        let row = Profile::of_table(line).unwrap_or_else(|BadValue(why)| panic!("{why}"));
        assert_eq!(Profile::of_table(&row.to_string()).as_ref(), Ok(&row), "{line}");
    }
}

#[test]
fn a_bad_row_says_what_is_wrong_and_shows_the_right_form() {
    let says = |text: &str| Profile::parse(text, "--client-profile").unwrap_err().to_string();
    let form = "write 'NAME=cap:60s,progress:no'";
    assert_eq!(says("x"), format!("`x`: `=` is missing; {form}"));
    assert_eq!(says("x=60s"), format!("`x=60s`: `60s` is not KEY:VALUE; {form}"));
    assert!(says("x=cap:60").contains("`60` has no unit; write `60s` or `60ms`"));
    assert!(says("x=patience:60s").contains("unknown key `patience`: known are cap, progress"));
    assert!(says("x=cap:60s").contains("progress:yes or progress:no"));
    assert!(says("x=cap:60s,progress:no,measured:2026-01-01").contains("for the table"));
    assert!(says("=cap:1s").starts_with("the glob before `=` is missing"));
}

#[test]
fn a_table_is_read_only_as_far_as_the_name_fits() {
    let broken =
        Profiles { table: "other=nonsense\nme=cap:5s,progress:no,measured:2026-11-18".into(), ..profiles() };
    assert_eq!(says(&broken, "me", "1", false), cap(5));
    assert_eq!(says(&broken, "other", "1", false), Verdict::Unknown);
}
