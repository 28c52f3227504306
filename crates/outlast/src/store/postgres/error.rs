//! What goes wrong with the database, in words for the person whose database it is. Never its password.

use outlast_engine::store::{Refusal, Trouble};
use tokio_postgres::error::SqlState;

/// What becomes of calls while the database is away.
const MEANWHILE: &str =
    "meanwhile calls that ask for a task are answered plainly, and what ends is kept in memory";

/// Which setting names the database.
const SETTING: &str = "`url` in [store] (--store-url)";

/// Why something was not done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The database cannot be reached, or went away: it may come back.
    Away(String),
    /// It is there, and does not let us; trying again changes nothing.
    Useless(String),
    /// Two transactions were in each other's way: this one is made again.
    Again,
    /// What was to be written does not go.
    Broken(String),
}

impl Failure {
    /// For people.
    pub fn words(&self) -> &str {
        match self {
            Failure::Away(why) | Failure::Useless(why) | Failure::Broken(why) => why,
            Failure::Again => "other processes change the same all the time",
        }
    }

    /// For the engine: nothing was written.
    pub fn unwritten(&self) -> Trouble {
        Trouble::Failed(format!("{}; {MEANWHILE}", self.words()))
    }

    /// For the engine: nothing was found.
    pub fn unread(&self) -> Trouble {
        Trouble::Failed(self.words().to_owned())
    }
}

/// Why a write was not made.
#[derive(Debug)]
pub enum Stop {
    /// It is not allowed.
    Refused(Refusal),
    /// The database does not work.
    Failed(Failure),
}

impl From<Refusal> for Stop {
    fn from(why: Refusal) -> Stop {
        Stop::Refused(why)
    }
}

impl From<Failure> for Stop {
    fn from(why: Failure) -> Stop {
        Stop::Failed(why)
    }
}

/// Which database, as people may see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shown {
    /// `db.example:5432`, or the path of a socket.
    pub host: String,
    pub database: String,
    pub user: String,
}

impl std::fmt::Display for Shown {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "PostgreSQL at {}", self.host)
    }
}

impl Shown {
    /// Nobody answers.
    pub fn unreachable(&self, why: &str) -> Failure {
        Failure::Away(format!("cannot reach {self}: {why}; {SETTING} says where it is"))
    }

    /// What TLS, or the URL, says against it.
    pub fn refused(&self, why: &str) -> Failure {
        Failure::Useless(format!("{self}: {why}; see {SETTING}"))
    }

    /// A newer outlast has changed the tables.
    pub fn newer(&self, found: u32, known: u32) -> Failure {
        let database = &self.database;
        Failure::Useless(format!(
            "database `{database}` of {self} was changed by a newer outlast (format {found}, this one knows {known}); \
             update this one"
        ))
    }

    /// The schema cannot be made.
    pub fn no_schema(&self, why: Failure) -> Failure {
        let Shown { database, user, .. } = self;
        match why {
            Failure::Useless(_) => Failure::Useless(format!(
                "user `{user}` may not make the schema `outlast` in database `{database}` of {self}; \
                 as its owner: CREATE SCHEMA outlast AUTHORIZATION {user}"
            )),
            other => other,
        }
    }

    /// An error of a statement, or of a connection that is being made.
    pub fn of(&self, error: &tokio_postgres::Error) -> Failure {
        let Some(said) = error.as_db_error() else {
            return Failure::Away(format!("{self} does not answer any more ({})", inner(error)));
        };
        let why = self.in_words(said.code(), said.message());
        match said.code() {
            &SqlState::T_R_DEADLOCK_DETECTED
            | &SqlState::T_R_SERIALIZATION_FAILURE
            | &SqlState::UNIQUE_VIOLATION
            | &SqlState::LOCK_NOT_AVAILABLE => Failure::Again,
            code if went_away(code) => Failure::Away(why),
            code if is_final(code) => Failure::Useless(why),
            _ => Failure::Broken(why),
        }
    }

    fn in_words(&self, code: &SqlState, message: &str) -> String {
        let Shown { database, user, .. } = self;
        match *code {
            SqlState::INVALID_PASSWORD => {
                format!("{self} refuses the password of user `{user}`; see {SETTING}")
            }
            SqlState::INVALID_AUTHORIZATION_SPECIFICATION => {
                format!("{self} does not let user `{user}` in ({message}); see {SETTING}")
            }
            SqlState::INVALID_CATALOG_NAME => {
                format!(
                    "{self} has no database `{database}`; make it (createdb {database}), or see {SETTING}"
                )
            }
            SqlState::DISK_FULL => format!("the disk of {self} is full; make room there"),
            SqlState::READ_ONLY_SQL_TRANSACTION => {
                format!("{self} only reads: it is a standby; {SETTING} must name the primary")
            }
            SqlState::TOO_MANY_CONNECTIONS => {
                format!(
                    "{self} takes no more connections ({message}); raise max_connections, or put PgBouncer before it"
                )
            }
            SqlState::INSUFFICIENT_PRIVILEGE => {
                format!("{self} does not allow user `{user}` what outlast needs ({message})")
            }
            _ => format!("{self}: {message}"),
        }
    }
}

/// The database shuts down, starts, or has ended our connection.
fn went_away(code: &SqlState) -> bool {
    let class = &code.code()[..2];
    // 57P: an operator's doing. 08: connections. 53: too little of something, which may pass. 25P03: we were stopped
    // for so long that our transaction was ended.
    let passes = class == "53" && *code != SqlState::DISK_FULL;
    class == "57" || class == "08" || passes || matches!(code.code(), "25P03" | "25006")
}

fn is_final(code: &SqlState) -> bool {
    let class = &code.code()[..2];
    class == "28" || class == "3D" || *code == SqlState::INSUFFICIENT_PRIVILEGE
}

/// What lies under an error of a connection.
fn inner(error: &tokio_postgres::Error) -> String {
    let cause = std::error::Error::source(error);
    match cause.and_then(|cause| cause.downcast_ref::<std::io::Error>()) {
        Some(error) => crate::server::http::words::of_io(error),
        None => cause.map_or_else(|| error.to_string(), ToString::to_string),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sentence_names_the_place_and_the_setting_and_never_a_password() {
        let shown = Shown { host: "db.example:5432".into(), database: "outlast".into(), user: "ann".into() };
        let Failure::Away(why) = shown.unreachable("connection refused") else { panic!() };
        assert_eq!(
            why,
            "cannot reach PostgreSQL at db.example:5432: connection refused; `url` in [store] (--store-url) says where \
             it is"
        );
        let password = shown.in_words(&SqlState::INVALID_PASSWORD, "");
        assert_eq!(
            password,
            "PostgreSQL at db.example:5432 refuses the password of user `ann`; see `url` in [store] (--store-url)"
        );
        assert!(went_away(&SqlState::ADMIN_SHUTDOWN) && !went_away(&SqlState::DISK_FULL));
        assert!(is_final(&SqlState::INVALID_PASSWORD) && !is_final(&SqlState::UNIQUE_VIOLATION));
    }
}
