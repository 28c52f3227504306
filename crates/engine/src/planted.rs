//! Faults that the simulation must find: one of them is switched on in a world of the tests, and a judge that does
//! not see it is blind. Only with the feature `planted`; without it every hook is `false` and goes away.
//!
//! A hook is one line, `if planted!(self, NAME)`, at the place where the mistake would be made.

/// One mistake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // each says what it does
pub enum Planted {
    OverloadsEverything,
    WaitsForEver,
    NeverWakesWaiting,
    AnswersTwice,
    DropsCancels,
    CancelsTwice,
    ReusesAttempts,
    CountsOwnKeepAlive,
    ForgetsMax,
    FiresLate,
    RepeatsUnsafe,
    RepeatsCommitted,
    LeaksTimers,
    ShowsBeforeStored,
    ReplaysOthers,
    ReplaysTooLittle,
    ResumesEmpty,
    LosesUnsent,
    NeverSleeps,
    KeepsSessions,
    SharesAcrossPrincipals,
    TellsEverybody,
    ForgetsToReconnect,
    ForgetsJoined,
    ChangesBytes,
    LosesCommits,
    HearsOldRuns,
    CountsCallsForEver,
    NeverRestarts,
    IgnoresEnds,
    HearsAnyServer,
    UnsubscribesAll,
    WaitsOnAfterAnswers,
    ForgetsKeys,
    ForgetsWaiters,
    ChangesTaskBytes,
    KeepsTurns,
    ForgetsTurns,
    KeepsOldPrograms,
    ServesRemoved,
    RestartsEverything,
    MixesServers,
    SendsUnasked,
    SendsDeclined,
    SendsApprovedTwice,
    KeepsQuestions,
    ForgetsHeld,
    SendsUnmarked,
    LetsSleepersLie,
    KeepsTraces,
    RepeatsSpans,
    ForgetsCallbacks,
    CallsBackTwice,
    ShowsAllPrincipals,
    FailsWhatCouldGoOn,
    ForgetsFailedLists,
    KeepsRevoked,
    MixesAsks,
    MixesProgress,
}

impl Planted {
    /// All of them.
    pub const ALL: [Planted; 59] = [
        Planted::OverloadsEverything,
        Planted::WaitsForEver,
        Planted::NeverWakesWaiting,
        Planted::AnswersTwice,
        Planted::DropsCancels,
        Planted::CancelsTwice,
        Planted::ReusesAttempts,
        Planted::CountsOwnKeepAlive,
        Planted::ForgetsMax,
        Planted::FiresLate,
        Planted::RepeatsUnsafe,
        Planted::RepeatsCommitted,
        Planted::LeaksTimers,
        Planted::ShowsBeforeStored,
        Planted::ReplaysOthers,
        Planted::ReplaysTooLittle,
        Planted::ResumesEmpty,
        Planted::LosesUnsent,
        Planted::NeverSleeps,
        Planted::KeepsSessions,
        Planted::SharesAcrossPrincipals,
        Planted::TellsEverybody,
        Planted::ForgetsToReconnect,
        Planted::ForgetsJoined,
        Planted::ChangesBytes,
        Planted::LosesCommits,
        Planted::HearsOldRuns,
        Planted::CountsCallsForEver,
        Planted::NeverRestarts,
        Planted::IgnoresEnds,
        Planted::HearsAnyServer,
        Planted::UnsubscribesAll,
        Planted::WaitsOnAfterAnswers,
        Planted::ForgetsKeys,
        Planted::ForgetsWaiters,
        Planted::ChangesTaskBytes,
        Planted::KeepsTurns,
        Planted::ForgetsTurns,
        Planted::KeepsOldPrograms,
        Planted::ServesRemoved,
        Planted::RestartsEverything,
        Planted::MixesServers,
        Planted::SendsUnasked,
        Planted::SendsDeclined,
        Planted::SendsApprovedTwice,
        Planted::KeepsQuestions,
        Planted::ForgetsHeld,
        Planted::SendsUnmarked,
        Planted::LetsSleepersLie,
        Planted::KeepsTraces,
        Planted::RepeatsSpans,
        Planted::ForgetsCallbacks,
        Planted::CallsBackTwice,
        Planted::ShowsAllPrincipals,
        Planted::FailsWhatCouldGoOn,
        Planted::ForgetsFailedLists,
        Planted::KeepsRevoked,
        Planted::MixesAsks,
        Planted::MixesProgress,
    ];
}

impl crate::Config {
    #[cfg(feature = "planted")]
    pub(crate) fn is_planted(&self, fault: Planted) -> bool {
        self.planted == Some(fault)
    }

    #[cfg(not(feature = "planted"))]
    #[inline(always)]
    pub(crate) fn is_planted(&self, _: Planted) -> bool {
        false
    }
}

/// Whether this mistake is to be made here.
macro_rules! planted {
    ($engine:expr, $fault:ident) => {
        $engine.config.is_planted(crate::planted::Planted::$fault)
    };
}
