//! The methods that outlast treats in a way of their own. All others pass as they are.

use crate::wire::{Field, Message};
use serde::{Deserialize, Serialize};

/// A request's method.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs)] // each is named after its text
#[serde(from = "String", into = "String")]
pub enum Method {
    Initialize,
    Discover,
    Ping,
    ToolsCall,
    ToolsList,
    PromptsGet,
    PromptsList,
    ResourcesRead,
    ResourcesList,
    ResourcesTemplatesList,
    ResourcesSubscribe,
    ResourcesUnsubscribe,
    CompletionComplete,
    LoggingSetLevel,
    TasksGet,
    TasksList,
    TasksCancel,
    TasksUpdate,
    TasksResult,
    RequestsResume,
    RequestsGetStatus,
    RequestsStatusAll,
    RequestsResumeAll,
    Listen,
    ElicitationCreate,
    SamplingCreateMessage,
    RootsList,
    /// One that we do not know.
    Other(Box<str>),
}

const NAMES: [(&str, Method); 27] = [
    ("tools/call", Method::ToolsCall),
    ("initialize", Method::Initialize),
    ("server/discover", Method::Discover),
    ("ping", Method::Ping),
    ("tools/list", Method::ToolsList),
    ("prompts/get", Method::PromptsGet),
    ("prompts/list", Method::PromptsList),
    ("resources/read", Method::ResourcesRead),
    ("resources/list", Method::ResourcesList),
    ("resources/templates/list", Method::ResourcesTemplatesList),
    ("resources/subscribe", Method::ResourcesSubscribe),
    ("resources/unsubscribe", Method::ResourcesUnsubscribe),
    ("completion/complete", Method::CompletionComplete),
    ("logging/setLevel", Method::LoggingSetLevel),
    ("tasks/get", Method::TasksGet),
    ("tasks/list", Method::TasksList),
    ("tasks/cancel", Method::TasksCancel),
    ("tasks/update", Method::TasksUpdate),
    ("tasks/result", Method::TasksResult),
    ("requests/resume", Method::RequestsResume),
    ("requests/getStatus", Method::RequestsGetStatus),
    ("dev.outlast/requests/getStatus/all", Method::RequestsStatusAll),
    ("dev.outlast/requests/resume/all", Method::RequestsResumeAll),
    ("subscriptions/listen", Method::Listen),
    ("elicitation/create", Method::ElicitationCreate),
    ("sampling/createMessage", Method::SamplingCreateMessage),
    ("roots/list", Method::RootsList),
];

impl From<String> for Method {
    fn from(text: String) -> Method {
        Method::new(&text)
    }
}

impl From<Method> for String {
    fn from(method: Method) -> String {
        method.as_str().to_owned()
    }
}

impl Method {
    /// The method of a message. Most are written plainly and need no decoding.
    pub fn of(message: &Message) -> Method {
        let raw = message.raw(Field::Method).unwrap_or_default();
        let inner = raw.get(1..raw.len().saturating_sub(1)).unwrap_or_default();
        let known = NAMES.iter().find(|(name, _)| name.as_bytes() == inner);
        match known {
            Some((_, method)) => method.clone(),
            None => Method::new(&message.text(Field::Method).unwrap_or_default()),
        }
    }

    /// Recognises a method by its text.
    pub fn new(text: &str) -> Method {
        let known = NAMES.iter().find(|(name, _)| *name == text);
        known.map_or_else(|| Method::Other(text.into()), |(_, method)| method.clone())
    }

    /// Its text.
    pub fn as_str(&self) -> &str {
        match self {
            Method::Other(text) => text,
            known => known.known().unwrap_or_default(),
        }
    }

    /// Its text, if it is one of those that we know: there are few of them, whatever a peer sends.
    pub fn known(&self) -> Option<&'static str> {
        NAMES.iter().find(|(_, method)| method == self).map(|(name, _)| *name)
    }

    /// Starts a conversation, so `handshake` is its limit and it is never cancelled.
    pub fn is_handshake(&self) -> bool {
        matches!(self, Method::Initialize | Method::Discover)
    }

    /// Leaves something behind in the server that its successor must be told, or tells something that
    /// must be compared.
    pub fn shapes_the_connection(&self) -> bool {
        matches!(
            self,
            Method::Initialize
                | Method::LoggingSetLevel
                | Method::ResourcesSubscribe
                | Method::ResourcesUnsubscribe
                | Method::ToolsList
                | Method::PromptsList
                | Method::ResourcesList
                | Method::ResourcesTemplatesList
        )
    }

    /// The protocol lets a server report progress on it, and servers expect a token there.
    pub fn takes_progress(&self) -> bool {
        matches!(self, Method::ToolsCall | Method::PromptsGet | Method::ResourcesRead)
    }

    /// A person may be behind the answer, so the calls in flight are not charged for the wait.
    pub fn waits_for_a_person(&self) -> bool {
        matches!(self, Method::ElicitationCreate | Method::SamplingCreateMessage)
    }
}
