//! The merged catalog: what several servers list, as one server would list it, and which of them a public name means.
//!
//! A [`Listing`] is what one server answered to one kind of list. A [`View`] is made of the listings that one client
//! may see: it gives every entry its public name and finds the entry again by that name alone. Nothing but the name
//! of an entry is ever changed.
//!
//! Not here: when servers are asked, and who waits for it (`merged.rs`, `engine/merged.rs`).

mod listing;
mod names;
mod offer;
mod page;
mod search;
mod template;
mod view;

pub(crate) use listing::{Listed, Listing};
pub(crate) use offer::{Welcome, foreign_extensions, offer};
pub(crate) use page::Page;
pub(crate) use search::Readable;
pub(crate) use view::{Part, Shown, View};

use crate::method::Method;

/// A kind of list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    Tools,
    Prompts,
    Resources,
    Templates,
}

impl Kind {
    pub(crate) const ALL: [Kind; 4] = [Kind::Tools, Kind::Prompts, Kind::Resources, Kind::Templates];

    /// The kind that a method lists.
    pub(crate) fn of(method: &Method) -> Option<Kind> {
        Kind::ALL.into_iter().find(|kind| kind.method() == *method)
    }

    pub(crate) fn method(self) -> Method {
        match self {
            Kind::Tools => Method::ToolsList,
            Kind::Prompts => Method::PromptsList,
            Kind::Resources => Method::ResourcesList,
            Kind::Templates => Method::ResourcesTemplatesList,
        }
    }

    /// The member of a result that holds the list.
    fn member(self) -> &'static str {
        match self {
            Kind::Tools => "tools",
            Kind::Prompts => "prompts",
            Kind::Resources => "resources",
            Kind::Templates => "resourceTemplates",
        }
    }

    /// The member of an entry that is its name.
    fn name(self) -> &'static str {
        match self {
            Kind::Tools | Kind::Prompts => "name",
            Kind::Resources => "uri",
            Kind::Templates => "uriTemplate",
        }
    }

    /// Its place among the lists that a client is told of.
    pub(crate) fn bit(self) -> u8 {
        match self {
            Kind::Tools => 1,
            Kind::Prompts => 2,
            Kind::Resources | Kind::Templates => 4,
        }
    }

    /// What a server must be capable of to be asked for it, and what its notifications call it.
    pub(crate) fn capability(self) -> &'static str {
        match self {
            Kind::Tools => "tools",
            Kind::Prompts => "prompts",
            Kind::Resources | Kind::Templates => "resources",
        }
    }
}

/// Every bound of a catalog, and what happens at it.
mod bounds {
    /// Entries of one server's list that are kept for the merged door. The others are left out, and the log says so.
    pub(super) const LISTED: usize = 20_000;

    /// Bytes of these entries. What exceeds them is left out, and the log says so.
    pub(super) const LISTED_BYTES: usize = 64 << 20;

    /// Pages of one server's list that are read for the merged door. The others are not read, and the log says so.
    pub(super) const LIST_PAGES: usize = 1_000;

    /// Members of an entry that are looked at. A name or uri behind them is not found.
    pub(super) const ENTRY_MEMBERS: usize = 1_000;

    /// Bytes of the name or uri of an entry. An entry with a longer one is left out.
    pub(super) const ENTRY_NAME: usize = 8 << 10;

    /// Entries in one page of a merged list. If there are more, the page ends with a cursor.
    pub(super) const LIST_PAGE: usize = 5_000;

    /// Bytes after which a page of a merged list ends.
    pub(super) const LIST_PAGE_BYTES: usize = 4 << 20;

    /// Bytes of the instructions of all servers together. What exceeds them is left out.
    pub(super) const INSTRUCTIONS: usize = 64 << 10;
}
