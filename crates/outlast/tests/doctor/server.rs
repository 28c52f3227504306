//! What `outlast doctor -- COMMAND` finds, one bad habit at a time.

use nix::sys::signal::Signal;
use outlast_testkit::peer::Peer;
use serde_json::json;

use crate::clinic::{discovered, examine, examine_script, examine_server, initialized};
use crate::world::{OUTLAST, Tree, fake_server, outlast};

/// A good server of the old way with one tool.
fn one_tool() -> String {
    initialized(r#"{"tools":{}}"#)
}

#[test]
fn a_good_server_has_nothing_odd() {
    let verdict = examine(&[], &[OUTLAST, "demo-server"]);
    verdict.is_odd_only_in(&[]);
    let report = &verdict.report;
    assert_eq!(report["legacy"]["version"], "2025-11-25");
    assert_eq!(report["modern"]["code"], -32601);
    assert_eq!(report["lists"]["tools"]["count"], 1);
    assert_eq!(report["ping"]["answered"], true);
    assert_eq!((&report["end"]["how"], &report["end"]["exit"]), (&json!("eof"), &json!("exit status 0")));
    assert_eq!(report["stderr"], json!({"lines": 0, "bytes": 0}));
}

#[test]
fn a_person_gets_an_aligned_report_in_plain_text() {
    let mut doctor = Peer::start(outlast().args(["doctor", "--", OUTLAST, "demo-server"]));
    assert_eq!(doctor.end().code(), Some(0));
    let lines: Vec<String> = doctor.rest().iter().map(|line| line.text()).collect();
    let server = concat!("  ok   server     demo ", env!("CARGO_PKG_VERSION"));
    for line in [server, "  ok   tasks      not offered", "Nothing is odd."] {
        assert!(lines.iter().any(|known| known == line), "{line}: {lines:#?}");
    }
    assert!(!lines.concat().contains('\x1b'));
}

#[test]
fn what_is_odd_is_marked_and_comes_with_what_helps() {
    let script = format!("echo 'listening \u{1b}[31m'; exec {OUTLAST} demo-server");
    let mut doctor = Peer::start(outlast().args(["doctor", "--", "sh", "-c", &script]));
    assert_eq!(doctor.end().code(), Some(1));
    let text: String = doctor.rest().iter().map(|line| line.text() + "\n").collect();
    for part in [
        "  odd  stdout ",
        "- stdout-noise: 2 lines on stdout, not JSON",
        "`listening \\u{1b}[31m`",
        "log to stderr",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn a_command_that_cannot_start_gives_the_usual_status() {
    for (command, status) in [("/no/such/command", 127), ("/etc/passwd", 126)] {
        let mut doctor = Peer::start(outlast().args(["doctor", "--", command]));
        assert_eq!(doctor.end().code(), Some(status));
        assert!(doctor.rest().is_empty());
        assert!(doctor.stderr_where(|text| text.contains("cannot start")).contains(command));
        let verdict = examine(&[], &[command]);
        assert_eq!((verdict.status, verdict.odd()), (status, vec!["not-started"]));
        assert_eq!(verdict.report["command"], json!([command]));
    }
}

/// A server that is slow to answer `server/discover` does not keep a person from reading what is known.
#[test]
fn a_report_is_printed_as_it_is_known() {
    let script = format!(r#"[ -e "$MARK" ] && exec sleep 60; : > "$MARK"; exec {OUTLAST} demo-server"#);
    let folder = tempfile::tempdir().unwrap();
    let mut doctor = outlast();
    doctor.env("MARK", folder.path().join("second")).args([
        "doctor",
        "--timeout",
        "5s",
        "--",
        "sh",
        "-c",
        &script,
    ]);
    let tree = Tree::mark(&mut doctor);
    let mut doctor = Peer::start(&mut doctor);
    doctor.line_where(|line| line.text().starts_with("  ok   legacy "));
    doctor.line_where(|line| line.text().starts_with("  ok   end "));
    assert!(doctor.exited().is_none());
    doctor.line_where(|line| line.text().starts_with("  odd  modern "));
    assert_eq!(doctor.end().code(), Some(1));
    tree.wait_until_gone();
}

#[test]
fn as_many_oddities_are_counted_as_rows_are_odd() {
    let mut doctor = Peer::start(outlast().args(["doctor", "--", "sh", "-c", "exit 3"]));
    assert_eq!(doctor.end().code(), Some(1));
    let lines: Vec<String> = doctor.rest().iter().map(|line| line.text()).collect();
    let odd = lines.iter().filter(|line| line.starts_with("  odd  ")).count();
    assert_eq!(odd, 2, "{lines:#?}");
    assert!(lines.iter().any(|line| line == "Odd (2):"), "{lines:#?}");
}

#[test]
fn a_url_is_not_taken_for_a_command() {
    let mut doctor = Peer::start(outlast().args(["doctor", "https://host.example/mcp"]));
    assert_eq!(doctor.end().code(), Some(2));
    let said = doctor.stderr_where(|text| text.contains('\n'));
    assert!(said.contains("cannot examine a URL") && said.contains("--trace-messages"), "{said}");
}

#[test]
fn a_bad_command_line_is_one_line_that_shows_the_right_form() {
    for (words, part) in [
        (&[][..], "outlast doctor -- npx"),
        (&["--"], "outlast doctor -- npx"),
        (&["npx", "server"], "`npx`"),
        (&["--jsom", "--", "x"], "--jsom"),
        (&["--timeout", "5", "--", "x"], "5s"),
        (&["client", "x"], "outlast doctor client"),
        (&["client", "--", "x"], "takes no arguments"),
    ] {
        let mut doctor = Peer::start(outlast().arg("doctor").args(words));
        assert_eq!(doctor.end().code(), Some(2), "{words:?}");
        let said = String::from_utf8(doctor.all_stderr()).unwrap();
        assert!(said.lines().count() == 1 && said.contains(part), "{said}");
    }
    let mut doctor = Peer::start(outlast().args(["doctor", "--help"]));
    let help: String = doctor.rest().iter().map(|line| line.text() + "\n").collect();
    for bound in ["60s", "10s", "ping 5s", "30s", "3s", "2s", "0.5s", "--json"] {
        assert!(help.contains(bound), "{bound}");
    }
}

#[test]
fn lines_that_are_no_messages_are_counted_and_the_first_is_shown() {
    let verdict = examine_script(&[], r#"echo one; echo two; echo '{"level":"info"}'; exec $DEMO"#);
    verdict.is_odd_only_in(&["stdout-early", "stdout-noise", "stdout-no-message"]);
    // In two starts.
    assert_eq!(verdict.report["stdout"]["noise"], json!({"count": 4, "first": "one"}));
    assert_eq!(verdict.report["stdout"]["noMessage"], json!({"count": 2, "first": r#"{"level":"info"}"#}));
    assert_eq!(verdict.report["stdout"]["early"]["count"], 3);
}

#[test]
fn ids_in_another_json_type_are_noticed_and_still_understood() {
    let verdict = examine_script(
        &[],
        r#"$DEMO | sed -u -e 's/"id":"\([0-9]*\)"/"id":\1/;t' -e 's/"id":\([0-9]*\)/"id":"\1"/'"#,
    );
    verdict.is_odd_only_in(&["id-type"]);
    assert!(verdict.about("id-type").contains(r#"`1 came back as "1"`"#));
    assert_eq!(verdict.report["lists"]["tools"]["count"], 1);
}

#[test]
fn an_error_without_an_id_is_noticed() {
    let verdict = examine_server(
        &[],
        &[
            ("initialize", &one_tool()),
            ("tools/list", r#"say '{"tools":[]}'"#),
            ("server/discover", "id=null; fail -32600"),
        ],
    );
    verdict.is_odd_only_in(&["id-missing"]);
    assert_eq!(verdict.report["modern"]["code"], -32600);
}

/// Whatever stands where an error should be, the doctor comes back with what it found.
#[test]
fn an_error_of_any_shape_is_read_and_null_beside_a_result_is_none() {
    let odd_error = |error: &str| format!(r#"printf '{{"jsonrpc":"2.0","id":%s,"error":{error}}}\n' "$id""#);
    for (error, message) in
        [(r#""boom""#, "boom"), ("7", "7"), (r#"{"code":"x","message":["m"]}"#, r#"["m"]"#)]
    {
        let cases = [
            ("initialize", &*one_tool()),
            ("tools/list", r#"say '{"tools":[]}'"#),
            ("server/discover", &odd_error(error)),
        ];
        let verdict = examine_server(&[], &cases);
        assert_eq!(verdict.report["modern"]["message"], message, "{}", verdict.report);
    }
    let both = r#"printf '{"jsonrpc":"2.0","id":%s,"error":null,"result":{"tools":[{"name":"a"}]}}\n' "$id""#;
    let verdict = examine_server(&[], &[("initialize", &one_tool()), ("tools/list", both)]);
    verdict.is_odd_only_in(&[]);
    assert_eq!(verdict.report["lists"]["tools"]["count"], 1);
}

#[test]
fn an_answer_that_is_not_strict_json_is_noticed() {
    let verdict = examine_server(
        &[],
        &[("initialize", &one_tool()), ("tools/list", r#"say '{"tools":[{"name":"a","max":NaN}]}'"#)],
    );
    verdict.is_odd_only_in(&["list-unreadable", "not-strict-json"]);
    assert!(verdict.about("not-strict-json").contains("NaN"));
}

#[test]
fn a_slow_start_is_told_with_the_setting_that_bounds_it() {
    let verdict = examine_script(&[], "sleep 3.1; exec $DEMO");
    verdict.is_odd_only_in(&["slow-start"]);
    let about = verdict.about("slow-start");
    assert!(about.contains("npx") && about.contains("--handshake"), "{about}");
}

#[test]
fn a_slow_end_is_told() {
    let verdict = examine_script(&[], "$DEMO; sleep 1.3");
    verdict.is_odd_only_in(&["slow-end"]);
    assert_eq!(verdict.report["end"]["how"], "eof");
    assert!(verdict.report["end"]["ms"].as_u64().unwrap() >= 1300);
}

#[test]
fn a_server_that_needs_sigterm_is_told() {
    let verdict = examine_script(&["--timeout", "2s"], "exec $FAKE --ignore-eof --mute server/discover");
    verdict.is_odd_only_in(&["handshake-silent", "needs-term"]);
    assert_eq!(
        (&verdict.report["end"]["how"], &verdict.report["end"]["exit"]),
        (&json!("sigterm"), &json!("signal 15"))
    );
}

#[test]
fn a_server_that_needs_sigkill_is_told_and_gone() {
    let script = "exec $FAKE --ignore-eof --ignore-term --exit-at server/discover 3";
    let verdict = examine_script(&[], script);
    verdict.is_odd_only_in(&["handshake-kills", "needs-kill"]);
    assert_eq!(verdict.report["end"]["how"], "sigkill");
    assert_eq!(verdict.report["modern"]["exit"], "exit status 3");
}

#[test]
fn processes_that_it_leaves_behind_are_named_and_gone() {
    let verdict = examine_script(&[], "sleep 50 & exec $DEMO");
    verdict.is_odd_only_in(&["orphans"]);
    assert!(verdict.about("orphans").contains("`sleep ("), "{}", verdict.about("orphans"));
}

#[test]
fn an_unanswered_ping_is_told() {
    let verdict = examine_script(&["--timeout", "2s"], "exec $FAKE --mute ping --exit-at server/discover 0");
    verdict.is_odd_only_in(&["handshake-kills", "ping-unanswered"]);
    assert_eq!(verdict.report["ping"], json!({"answered": false}));
}

#[test]
fn a_server_that_answers_no_string_ids_is_told() {
    let ping = r#"case $id in '"'*) ;; *) say '{}';; esac"#;
    let verdict = examine_server(&["--timeout", "2s"], &[("initialize", &initialized("{}")), ("ping", ping)]);
    verdict.is_odd_only_in(&["string-id"]);
}

#[test]
fn a_result_for_an_unknown_method_is_told() {
    let verdict = examine(&[], &[fake_server().to_str().unwrap()]);
    verdict.is_odd_only_in(&["handshake-odd"]);
}

#[test]
fn tool_names_that_clients_refuse_and_names_that_stand_twice_are_told() {
    let list = r#"say '{"tools":[{"name":"run it"},{"name":"a"},{"name":"a"},{"name":""}]}'"#;
    let verdict = examine_server(&[], &[("initialize", &one_tool()), ("tools/list", list)]);
    verdict.is_odd_only_in(&["tool-name", "tool-twice"]);
    assert!(verdict.about("tool-name").contains("`run it`, ``"));
}

#[test]
fn a_very_large_list_is_told() {
    let list = r#"say "{\"tools\":[{\"name\":\"a\",\"description\":\"$(head -c 1200000 /dev/zero | tr '\0' x)\"}]}""#;
    let verdict = examine_server(&[], &[("initialize", &one_tool()), ("tools/list", list)]);
    verdict.is_odd_only_in(&["large-list"]);
    assert!(verdict.about("large-list").contains("1.1 MiB"));
}

#[test]
fn all_pages_are_counted_and_an_empty_cursor_is_one() {
    let list = r#"case $line in
        *'"cursor":"2"'*) say '{"prompts":[{"name":"c"}]}';;
        *'"cursor":""'*) say '{"prompts":[{"name":"b"}],"nextCursor":"2"}';;
        *) say '{"prompts":[{"name":"a"}],"nextCursor":""}';;
    esac"#;
    let verdict =
        examine_server(&[], &[("initialize", &initialized(r#"{"prompts":{}}"#)), ("prompts/list", list)]);
    verdict.is_odd_only_in(&[]);
    assert_eq!(verdict.report["lists"]["prompts"]["count"], 3);
    assert_eq!(verdict.report["lists"]["prompts"]["pages"], 3);
}

#[test]
fn a_list_without_end_is_left_after_a_hundred_pages() {
    let verdict = examine_server(
        &[],
        &[("initialize", &one_tool()), ("tools/list", r#"say '{"tools":[],"nextCursor":"x"}'"#)],
    );
    verdict.is_odd_only_in(&["list-endless"]);
    assert_eq!(verdict.report["lists"]["tools"]["pages"], 100);
}

#[test]
fn lists_that_fail_or_never_come_are_told() {
    let verdict = examine_server(
        &["--timeout", "2s"],
        &[
            ("initialize", &initialized(r#"{"tools":{},"prompts":{},"resources":{}}"#)),
            ("tools/list", ":"),
            ("prompts/list", "fail -32603"),
            ("resources/list", r#"say '{"resources":[]}'"#),
        ],
    );
    // Resources without templates are usual.
    verdict.is_odd_only_in(&["list-silent", "list-failed"]);
    assert!(verdict.about("list-silent").contains("--method 'tools/list=timeout:10s'"));
    assert_eq!(verdict.report["lists"]["templates"]["outcome"], "whole");
}

#[test]
fn what_is_declared_is_reported() {
    let capabilities = r#"{"tools":{"listChanged":true,"timeouts":{"call":120}},"tasks":{"requests":{"tools":{"call":{}}}}}"#;
    let list = r#"say '{"tools":[{"name":"a","execution":{"taskSupport":"required"}},{"name":"b","execution":{"taskSupport":"optional"}}]}'"#;
    let verdict = examine_server(&[], &[("initialize", &initialized(capabilities)), ("tools/list", list)]);
    verdict.is_odd_only_in(&[]);
    let report = &verdict.report;
    assert_eq!(report["capabilities"]["tools"]["listChanged"], true);
    assert_eq!(report["timeoutsSeconds"], json!({"tools/call": 120.0}));
    assert_eq!(
        report["tasks"],
        json!({"legacy": true, "modern": false, "optionalTools": 1, "requiredTools": 1})
    );
    assert_eq!(report["legacy"]["version"], "2025-06-18");
}

#[test]
fn a_server_of_the_new_way_alone_is_examined_in_it() {
    let capabilities = r#"{"tools":{},"extensions":{"io.modelcontextprotocol/tasks":{}}}"#;
    let list = r#"case $line in *io.modelcontextprotocol/protocolVersion*) say '{"tools":[{"name":"a"}]}';; *) fail -32602;; esac"#;
    let refuse = r#"printf '{"jsonrpc":"2.0","id":%s,"error":{"code":-32022,"message":"no","data":{"supported":["2026-07-28"]}}}\n' "$id""#;
    let verdict = examine_server(
        &[],
        &[("initialize", refuse), ("server/discover", &discovered(capabilities)), ("tools/list", list)],
    );
    verdict.is_odd_only_in(&[]);
    let report = &verdict.report;
    assert_eq!(report["server"], "s 2");
    assert_eq!(report["legacy"]["supported"], json!(["2026-07-28"]));
    assert_eq!((&report["modern"]["works"], &report["tasks"]["modern"]), (&json!(true), &json!(true)));
    assert_eq!(report["lists"]["tools"]["count"], 1);
    assert_eq!(report["ping"], json!(null));
}

#[test]
fn a_server_that_ends_before_it_answers_is_told_with_its_last_line() {
    let verdict = examine_script(&[], "echo starting >&2; echo 'API_KEY is missing' >&2; exit 3");
    verdict.is_odd_only_in(&["no-handshake", "no-handshake"]);
    let about = verdict.about("no-handshake");
    assert!(about.contains("exit status 3") && about.contains("`API_KEY is missing`"), "{about}");
    assert_eq!(verdict.report["stderr"]["lines"], 4);
}

#[test]
fn a_second_start_that_fails_is_not_blamed_on_the_question() {
    let folder = tempfile::tempdir().unwrap();
    let lock = folder.path().join("lock");
    let verdict = examine_script(&[], &format!("mkdir {} || exit 5; exec $DEMO", lock.display()));
    verdict.is_odd_only_in(&["second-start"]);
    assert!(verdict.about("second-start").contains("exit status 5"));
}

#[test]
fn a_flood_on_stderr_is_told() {
    let verdict = examine_script(&[], "yes noise | head -n 2000 >&2; exec $DEMO");
    verdict.is_odd_only_in(&["stderr-flood"]);
    assert_eq!(verdict.report["stderr"]["lines"], 4000);
}

#[test]
fn a_server_that_never_stops_talking_does_not_keep_the_doctor() {
    let script = r#"exec yes '{"jsonrpc":"2.0","method":"notifications/message"}'"#;
    let verdict = examine_script(&["--timeout", "500ms"], script);
    assert!(verdict.odd().contains(&"no-handshake"), "{:?}", verdict.odd());
}

#[test]
fn questions_of_the_server_are_answered() {
    let initialize = format!(
        r#"echo '{{"jsonrpc":"2.0","id":"q","method":"ping"}}'; read -r answer
           case $answer in *'"id":"q"'*'"result"'*) ;; *) exit 9;; esac
           echo '{{"jsonrpc":"2.0","id":"r","method":"roots/list"}}'; read -r answer
           case $answer in *-32601*) ;; *) exit 9;; esac
           {}"#,
        initialized("{}")
    );
    examine_server(&[], &[("initialize", &initialize)]).is_odd_only_in(&[]);
}

#[test]
fn nothing_survives_a_doctor_that_is_killed() {
    let mut command = outlast();
    command.args(["doctor", "--"]).arg(fake_server()).args([
        "--ignore-term",
        "--ignore-eof",
        "--mute",
        "initialize",
    ]);
    let tree = Tree::mark(&mut command);
    let mut doctor = Peer::start(&mut command);
    // The doctor, its guardian, the server.
    assert!(outlast_testkit::peer::wait_until(outlast_testkit::peer::LIMIT, || tree.processes().len() == 3));
    doctor.signal(Signal::SIGKILL);
    doctor.end();
    tree.wait_until_gone();
}

#[test]
fn the_probes_for_clients_are_a_good_server_in_both_eras() {
    let verdict = examine(&[], &[OUTLAST, "doctor", "client"]);
    verdict.is_odd_only_in(&[]);
    assert_eq!(verdict.report["modern"]["version"], "2026-07-28");
    assert_eq!(verdict.report["lists"]["tools"]["count"], 4);
}
