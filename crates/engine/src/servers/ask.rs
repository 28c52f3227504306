//! A request of a server to the client: sampling, elicitation, roots, ping.

use crate::clients::Way;
use crate::id::{ClientId, JsonId, Run, ServerId};
use crate::method::Method;
use crate::policy::Limit;
use crate::time::Mono;

/// One such request, until the client answers it.
#[derive(Debug)]
pub(crate) struct Ask {
    pub(crate) client: ClientId,
    pub(crate) way: Way,
    pub(crate) server: ServerId,
    /// The process that asked: its successor must not get the answer.
    pub(crate) run: Run,
    /// As the server wrote it.
    pub(crate) id: JsonId,
    pub(crate) method: Method,
    pub(crate) limit: Option<Limit>,
    pub(crate) armed: Option<Mono>,
}
