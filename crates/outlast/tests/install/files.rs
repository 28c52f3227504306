//! How a file is replaced: whole, with its mode, behind its links, or not at all.

use crate::world::{PLAIN, WRAPPED, World, names, put, text};
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

fn mode(path: &std::path::Path) -> u32 {
    fs::metadata(path).unwrap().mode() & 0o7777
}

#[test]
fn mode_stays_and_the_backup_has_it_too() {
    for wanted in [0o600, 0o644, 0o664, 0o4750] {
        let world = World::new();
        let file = world.home(".cursor/mcp.json");
        put(&file, PLAIN);
        fs::set_permissions(&file, fs::Permissions::from_mode(wanted)).unwrap();
        assert_eq!(world.run(&["install", "cursor", "--yes"]).code, 0);
        let backup = world.home(".cursor/mcp.json.outlast-backup");
        assert_eq!((mode(&file), mode(&backup)), (wanted, wanted));
        assert_eq!((text(&file).as_str(), text(&backup).as_str()), (WRAPPED, PLAIN));
        assert_eq!(names(&world.home(".cursor")), ["mcp.json", "mcp.json.outlast-backup"]);
    }
}

#[test]
fn an_owner_stays() {
    let world = World::new();
    let file = world.home(".cursor/mcp.json");
    put(&file, PLAIN);
    // Only root may give a file away; others see their own file stay theirs.
    let _ = std::os::unix::fs::chown(&file, Some(12345), Some(54321));
    let owner = |path| fs::metadata(path).map(|metadata| (metadata.uid(), metadata.gid())).unwrap();
    let before = owner(&file);
    assert_eq!(world.run(&["install", "cursor", "--yes"]).code, 0);
    assert_eq!(owner(&file), before);
    assert_eq!(owner(&world.home(".cursor/mcp.json.outlast-backup")), before);
}

#[test]
fn a_link_stays_and_the_file_behind_it_is_changed() {
    let world = World::new();
    let real = world.home("dotfiles/mcp.json");
    put(&real, PLAIN);
    fs::create_dir(world.home(".cursor")).unwrap();
    symlink("../dotfiles/mcp.json", world.home(".cursor/mcp.json")).unwrap();
    let said = world.run(&["install", "cursor", "--yes"]);
    assert_eq!(said.code, 0);
    assert!(said.out.contains("~/.cursor/mcp.json -> ~/dotfiles/mcp.json"), "{}", said.out);
    assert!(fs::symlink_metadata(world.home(".cursor/mcp.json")).unwrap().is_symlink());
    assert_eq!(text(&real), WRAPPED);
    assert_eq!(names(&world.home("dotfiles")), ["mcp.json", "mcp.json.outlast-backup"]);
    assert_eq!(names(&world.home(".cursor")), ["mcp.json"]);
}

#[test]
fn a_file_with_two_names_is_changed_once() {
    let world = World::new();
    let real = world.home(".config/opencode/opencode.json");
    put(&real, r#"{"mcp": {"a": {"type": "local", "command": ["x"]}}}"#);
    symlink("opencode.json", world.home(".config/opencode/opencode.jsonc")).unwrap();
    let said = world.run(&["install", "opencode", "--yes"]);
    assert_eq!((said.code, said.err.as_str()), (0, ""));
    assert_eq!(
        text(&real),
        r#"{"mcp": {"a": {"type": "local", "command": ["outlast", "--installed", "--", "x"]}}}"#
    );
}

#[test]
fn a_link_that_leads_nowhere_is_said() {
    let world = World::new();
    fs::create_dir(world.home(".cursor")).unwrap();
    symlink("nowhere", world.home(".cursor/mcp.json")).unwrap();
    let said = world.run(&["install", "cursor", "--yes"]);
    assert!(said.code == 1 && said.err.contains("cannot be read"), "{}", said.err);
}

#[test]
fn a_read_only_file_is_left_alone() {
    let world = World::new();
    let file = world.home(".cursor/mcp.json");
    put(&file, PLAIN);
    fs::set_permissions(&file, fs::Permissions::from_mode(0o444)).unwrap();
    let said = world.run(&["install", "cursor", "--yes"]);
    assert!(said.code == 1 && said.err.contains("is read-only; it is left alone"), "{}", said.err);
    assert_eq!(text(&file), PLAIN);
    assert_eq!(names(&world.home(".cursor")), ["mcp.json"]);
}

#[test]
fn what_is_no_text_file_is_left_alone() {
    let world = World::new();
    fs::create_dir_all(world.home(".cursor/mcp.json")).unwrap();
    assert!(world.run(&["install", "cursor", "--yes"]).err.contains("is not a regular file"));
    put(&world.home(".gemini/settings.json"), b"{\n\xff}");
    let said = world.run(&["install", "gemini", "--yes"]);
    assert!(said.code == 1 && said.err.contains("line 2: is not UTF-8"), "{}", said.err);
}

#[test]
fn earlier_backups_are_kept() {
    let world = World::new();
    put(&world.home(".cursor/mcp.json"), PLAIN);
    for aim in ["install", "uninstall", "install"] {
        assert_eq!(world.run(&[aim, "cursor", "--yes"]).code, 0);
    }
    let backups =
        ["", ".2", ".3"].map(|number| text(&world.home(&format!(".cursor/mcp.json.outlast-backup{number}"))));
    assert_eq!(backups, [PLAIN, WRAPPED, PLAIN]);
}
