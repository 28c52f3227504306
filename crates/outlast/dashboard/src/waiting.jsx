import { useState } from 'preact/hooks';
import { Fact, Facts, Lines, Nothing, Said, State, Sure, post, useNow } from './parts.jsx';
import { plain, whole } from './text.js';

const SCOPES = [['once', 'this call only'], ['session', 'this tool in this session'], ['minutes', 'this tool for 10 minutes']];
const FOR = { session: 'for this session', minutes: 'for 10 minutes' };

/** Longer arguments are cut by outlast already; this is the page's own bound. */
const ARGUMENTS = 5000;

export function Waiting({ state }) {
    const now = useNow();
    const open = state.holds.filter(hold => hold.open);
    const good = state.holds.filter(hold => hold.grants);
    return <>
        {open.length === 0 && <Nothing>No call waits for approval.</Nothing>}
        <ul class="rows">{open.map(hold => <Hold key={hold.hold} hold={hold} now={now} decides={state.rights.decides} />)}</ul>
        {good.length > 0 && <section aria-labelledby="good">
            <h3 id="good">Still good</h3>
            <ul class="rows">{good.map(hold => <li class="row" key={hold.hold}>
                <div class="what"><b><Said most={80}>{hold.tool}</Said></b> <span class="of">of <Said most={40}>{hold.server}</Said></span></div>
                <p class="small">approved {FOR[hold.grants]} by <Said most={60}>{hold.decision?.by}</Said></p>
                {state.rights.decides && <div class="does"><Sure label="Take back" sure="Yes, take it back" about={`approval of ${hold.tool}`}
                    act={() => post(`holds/${hold.hold}`, { decision: 'decline', reason: 'taken back' })} /></div>}
            </li>)}</ul>
        </section>}
    </>;
}

function Hold({ hold, now, decides }) {
    const left = Date.parse(hold.until) - now;
    return <li class="row hold">
        <div class="what"><b><Said most={120}>{hold.tool}</Said></b> <span class="of">of <Said most={60}>{hold.server}</Said></span></div>
        <div class="age"><b>{whole(now - Date.parse(hold.asked))}</b> <State word="waiting" kind="held" /></div>
        <Facts>
            <Fact name="client"><Said most={100}>{hold.client || 'a client that gave no name'}</Said></Fact>
            <Fact name="whose"><Said most={100}>{hold.principal}</Said></Fact>
            <Fact name="closes in">{whole(left)}</Fact>
        </Facts>
        {!hold.waits && <p class="small">The client has left; a yes lets the same call pass when it is made again.</p>}
        {hold.arguments
            ? <Lines most={ARGUMENTS} label={`arguments of ${plain(hold.tool, 60)}`}>{pretty(hold.arguments)}</Lines>
            : <p class="small">no arguments</p>}
        {decides ? <Decision hold={hold} /> : <p class="small">Your token may not decide this.</p>}
    </li>;
}

/** As lines, if it is all there. */
function pretty(text) {
    try {
        return JSON.stringify(JSON.parse(text), null, 2);
    } catch {
        return text;
    }
}

function Decision({ hold }) {
    const [reason, say] = useState('');
    const [scope, choose] = useState('once');
    const [told, tell] = useState('');
    const [busy, set] = useState(false);
    const decide = async decision => {
        set(true);
        try {
            const answer = await post(`holds/${hold.hold}`, { decision, reason, for: decision === 'approve' ? scope : 'once' });
            tell(answer.counts ? 'decided' : `somebody else decided first: ${answer.decision?.by ?? ''}`);
            document.querySelector('main h2')?.focus();
        } catch (error) {
            tell(error.message);
        }
        set(false);
    };
    const about = plain(hold.tool, 80);
    return <form class="decision" onSubmit={event => event.preventDefault()}>
        <label>Reason <input value={reason} maxLength={500} placeholder="told to the client" onInput={event => say(event.target.value)} /></label>
        <label>Good for <select value={scope} onChange={event => choose(event.target.value)}>
            {SCOPES.map(([word, label]) => <option key={word} value={word}>{label}</option>)}
        </select></label>
        <span class="buttons">
            <button type="button" class="strong" disabled={busy} aria-label={`Approve ${about}`} onClick={() => decide('approve')}>Approve</button>
            <button type="button" disabled={busy} aria-label={`Decline ${about}`} onClick={() => decide('decline')}>Decline</button>
        </span>
        {told && <span class="told" role="alert">{plain(told, 300)}</span>}
    </form>;
}
