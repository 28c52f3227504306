-- A store as version 9 leaves it: what a file of that version looks like for ever.
PRAGMA application_id = 1869968492;
PRAGMA user_version = 9;

CREATE TABLE records (
    number    INTEGER PRIMARY KEY AUTOINCREMENT,
    id        BLOB NOT NULL UNIQUE,
    ticket    TEXT NOT NULL,
    principal TEXT NOT NULL,
    server    TEXT NOT NULL,
    method    TEXT NOT NULL,
    tool      TEXT NOT NULL,
    key       TEXT,
    faces     INTEGER NOT NULL,
    state     INTEGER NOT NULL,
    created   INTEGER NOT NULL,
    updated   INTEGER NOT NULL,
    expires   INTEGER,
    revision  INTEGER NOT NULL,
    epoch     INTEGER NOT NULL,
    owner     TEXT NOT NULL,
    weight    INTEGER NOT NULL,
    body      BLOB NOT NULL
) STRICT;
CREATE UNIQUE INDEX records_open_key ON records (principal, server, key) WHERE key IS NOT NULL AND state < 2;
CREATE INDEX records_key ON records (principal, server, key, number) WHERE key IS NOT NULL;
CREATE INDEX records_principal ON records (principal, number);
CREATE INDEX records_open ON records (server, owner) WHERE state < 2;
CREATE INDEX records_owner ON records (owner) WHERE state < 2;
CREATE INDEX records_ended ON records (updated, number) WHERE state >= 2;
CREATE INDEX records_expire ON records (expires) WHERE state >= 2 AND expires IS NOT NULL;

CREATE TABLE requests (
    record INTEGER PRIMARY KEY REFERENCES records ON DELETE CASCADE,
    bytes  BLOB NOT NULL
) STRICT;
CREATE TABLE answers (
    record INTEGER PRIMARY KEY REFERENCES records ON DELETE CASCADE,
    failed INTEGER NOT NULL,
    bytes  BLOB NOT NULL
) STRICT;

CREATE TABLE leases (owner TEXT PRIMARY KEY, until INTEGER NOT NULL) STRICT, WITHOUT ROWID;

CREATE TABLE "messages" (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    record INTEGER NOT NULL REFERENCES records ON DELETE CASCADE,
    kind   INTEGER NOT NULL,
    bytes  BLOB NOT NULL
) STRICT;

CREATE TABLE streams (
    number  INTEGER PRIMARY KEY,
    id      BLOB NOT NULL UNIQUE,
    last    INTEGER NOT NULL,
    expires INTEGER NOT NULL
, owner TEXT NOT NULL DEFAULT '', epoch INTEGER NOT NULL DEFAULT 1) STRICT;
CREATE INDEX streams_expire ON streams (expires);
CREATE TABLE events (
    stream INTEGER NOT NULL REFERENCES streams ON DELETE CASCADE,
    number INTEGER NOT NULL,
    bytes  BLOB NOT NULL,
    PRIMARY KEY (stream, number)
) STRICT, WITHOUT ROWID;

CREATE TABLE sessions (
    id          BLOB PRIMARY KEY,
    name        TEXT NOT NULL,
    principal   TEXT NOT NULL,
    initialize  BLOB NOT NULL,
    initialized BLOB NOT NULL,
    used        INTEGER NOT NULL,
    weight      INTEGER NOT NULL
, setup BLOB NOT NULL DEFAULT X'', owner TEXT NOT NULL DEFAULT '', epoch INTEGER NOT NULL DEFAULT 1, former TEXT NOT NULL DEFAULT '') STRICT;
CREATE INDEX sessions_used ON sessions (used);

CREATE TABLE calls (
    number   INTEGER PRIMARY KEY AUTOINCREMENT,
    server   TEXT NOT NULL,
    method   TEXT NOT NULL,
    tool     TEXT NOT NULL,
    outcome  TEXT NOT NULL,
    began    INTEGER NOT NULL,
    took     INTEGER NOT NULL,
    asked    INTEGER NOT NULL,
    answered INTEGER NOT NULL
) STRICT;

CREATE TABLE usage (records INTEGER NOT NULL, bytes INTEGER NOT NULL) STRICT;
INSERT INTO usage VALUES (0, 0);
CREATE TRIGGER record_comes AFTER INSERT ON records
    BEGIN UPDATE usage SET records = records + 1, bytes = bytes + NEW.weight; END;
CREATE TRIGGER record_changes AFTER UPDATE OF weight ON records WHEN OLD.weight <> NEW.weight
    BEGIN UPDATE usage SET bytes = bytes - OLD.weight + NEW.weight; END;
CREATE TRIGGER record_goes AFTER DELETE ON records
    BEGIN UPDATE usage SET records = records - 1, bytes = bytes - OLD.weight; END;
CREATE TRIGGER event_comes AFTER INSERT ON events
    BEGIN UPDATE usage SET bytes = bytes + 64 + length(NEW.bytes); END;
CREATE TRIGGER event_goes AFTER DELETE ON events
    BEGIN UPDATE usage SET bytes = bytes - 64 - length(OLD.bytes); END;
CREATE TRIGGER session_comes AFTER INSERT ON sessions
    BEGIN UPDATE usage SET bytes = bytes + NEW.weight; END;
CREATE TRIGGER session_goes AFTER DELETE ON sessions
    BEGIN UPDATE usage SET bytes = bytes - OLD.weight; END;
CREATE TRIGGER session_changes AFTER UPDATE OF weight ON sessions WHEN OLD.weight <> NEW.weight
    BEGIN UPDATE usage SET bytes = bytes - OLD.weight + NEW.weight; END;

-- A task that has completed, and a hand-off that runs in a process that is gone, with a mailbox message to it.
CREATE TABLE holds (
    number    INTEGER PRIMARY KEY AUTOINCREMENT,
    key       TEXT NOT NULL,
    principal TEXT NOT NULL,
    server    TEXT NOT NULL,
    name      TEXT NOT NULL,
    tool      TEXT NOT NULL,
    arguments TEXT NOT NULL,
    client    TEXT NOT NULL,
    session   TEXT NOT NULL,
    owner     TEXT NOT NULL,
    asked     INTEGER NOT NULL,
    until     INTEGER NOT NULL,
    used      INTEGER NOT NULL,
    decision  TEXT
) STRICT;
CREATE INDEX holds_tool ON holds (principal, server, tool);
CREATE TABLE audit (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    entry  TEXT NOT NULL
) STRICT;
CREATE TABLE forwarded (
    number  INTEGER PRIMARY KEY AUTOINCREMENT,
    owner   TEXT NOT NULL,
    session TEXT NOT NULL,
    bytes   BLOB NOT NULL,
    until   INTEGER NOT NULL
) STRICT;
CREATE INDEX forwarded_owner ON forwarded (owner);
CREATE TRIGGER forwarded_comes AFTER INSERT ON forwarded
    BEGIN UPDATE usage SET bytes = bytes + 64 + length(NEW.bytes); END;
CREATE TRIGGER forwarded_goes AFTER DELETE ON forwarded
    BEGIN UPDATE usage SET bytes = bytes - 64 - length(OLD.bytes); END;
CREATE TABLE shown (
    owner   TEXT PRIMARY KEY,
    process TEXT NOT NULL,
    body    BLOB NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE told (
    number  INTEGER PRIMARY KEY AUTOINCREMENT,
    process TEXT NOT NULL,
    body    BLOB NOT NULL
) STRICT;
CREATE INDEX told_process ON told (process);
CREATE TABLE durations (
    day      INTEGER NOT NULL,
    server   TEXT NOT NULL,
    tool     TEXT NOT NULL,
    bucket   INTEGER NOT NULL,
    calls    INTEGER NOT NULL,
    failures INTEGER NOT NULL,
    cut_off  INTEGER NOT NULL,
    slowest  INTEGER NOT NULL,
    PRIMARY KEY (day, server, tool, bucket)
) STRICT, WITHOUT ROWID;
CREATE TABLE callbacks (
    number   INTEGER PRIMARY KEY AUTOINCREMENT,
    name     TEXT NOT NULL,
    body     TEXT NOT NULL,
    made     INTEGER NOT NULL,
    attempts INTEGER NOT NULL,
    due      INTEGER,
    why      TEXT NOT NULL
) STRICT;
CREATE INDEX callbacks_due ON callbacks (due) WHERE due IS NOT NULL;
CREATE INDEX messages_record ON messages (record);
CREATE TRIGGER message_comes AFTER INSERT ON messages
    BEGIN UPDATE usage SET bytes = bytes + 64 + length(NEW.bytes); END;
CREATE TRIGGER message_goes AFTER DELETE ON messages
    BEGIN UPDATE usage SET bytes = bytes - 64 - length(OLD.bytes); END;

INSERT INTO records VALUES (1, X'58badd9b455145b487ad24c7f259cc43', '0101010101010101010101010101010101010101010101010101010101010101', 'token:ann', 'files#0011223344556677', 'tools/call', 'search', 'key-1', 1, 2, 1000, 2000, 3602000, 2, 1, 'earlier/1/10/7/00000000000000ff', 671, CAST('{"v":1,"ttl":90000000}' AS BLOB));
INSERT INTO requests VALUES (1, CAST('{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"search","arguments":{"n":1.0}}}' AS BLOB));
INSERT INTO answers VALUES (1, 0, CAST('{"content":[],"structuredContent":{"n":1.0}}' AS BLOB));
INSERT INTO records VALUES (2, X'a54071e66da85e81b24c4dfede71a400', '02020202020202020202020202020202', 'stdio', 'files#0011223344556677', 'tools/call', 'build', NULL, 8, 0, 1500, 1500, NULL, 1, 1, 'earlier/1/10/7/00000000000000ff', 600, CAST('{"v":1,"repeatable":"repeatable"}' AS BLOB));
INSERT INTO requests VALUES (2, CAST('{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"build"}}' AS BLOB));
INSERT INTO leases VALUES ('earlier/1/10/7/00000000000000ff', 16000);
INSERT INTO messages VALUES (1, 2, 0, X'');

INSERT INTO streams VALUES (1, X'29b48932e3b4af06690778f20598ed04', 2, 9000, 'boot-0/1/2/3/0000000000000004', 1);
INSERT INTO events VALUES (1, 1, CAST('one' AS BLOB)), (1, 2, CAST('two' AS BLOB));
INSERT INTO sessions VALUES (X'84097828fc31a8c8d29210df48901a85', 'session-1', 'token:ann', CAST('{"method":"initialize"}' AS BLOB), X'', 2000, 361, CAST('[{"jsonrpc":"2.0","id":4,"method":"logging/setLevel","params":{"level":"debug"}}]' AS BLOB), 'earlier/1/10/7/00000000000000ff', 3, 'earlier/1/9/5/00000000000000fe');
INSERT INTO calls VALUES (1, 'files#0011223344556677', 'tools/call', 'search', 'answered', 1000, 1000, 80, 44);
INSERT INTO holds VALUES (1, 'k', 'stdio', 'files#0011223344556677', 'files', 'delete', '{}', 'editor', 'line 1', 'earlier/1/10/7/00000000000000ff', 1000, 9000000000000, 0, NULL);
INSERT INTO audit VALUES (1, '{"hold":7,"principal":"stdio","server":"files","tool":"delete","arguments":"{}","client":"editor","yes":true,"scope":"once","reason":"","place":"command line","by":"ann","at":1000}');
INSERT INTO shown VALUES ('earlier/1/10/7/00000000000000ff', '10-00000001', CAST('{"version":1}' AS BLOB));
INSERT INTO durations VALUES (0, 'files', 'search', -1, 2, 1, 0, 1500), (0, 'files', 'search', 66, 2, 0, 0, 0);
INSERT INTO callbacks VALUES (1, 'ops', '{"type":"call.completed"}', 1000, 1, 9000000000000, 'connection refused');
