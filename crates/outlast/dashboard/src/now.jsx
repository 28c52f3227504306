import { Limit, Nothing, Said, State, Sure, post, useFilter, useFirst, useNow } from './parts.jsx';
import { clock, duration, plain, whole } from './text.js';

/** States in which the clock of `timeout` moves. */
const MOVES = ['running', 'followed', 'parked', 'queued'];

const story = id => `#/call/${encodeURIComponent(id)}`;
const words = call => [call.tool ?? '', call.method, call.server, call.client ?? '', call.state];

export function Now({ state }) {
    const now = useNow();
    const sorted = [...state.calls].sort((a, b) => a.began - b.began);
    const [kept, field] = useFilter(sorted, words, 'calls');
    const [rows, more] = useFirst(kept, 100);
    return <>
        {field}
        {rows.length === 0 && <Nothing>{state.calls.length ? 'No call fits.' : 'No call is running.'}</Nothing>}
        <ul class="rows calls">{rows.map(call => <Call key={call.id} call={call} now={now} />)}</ul>
        {more}
        {state.more > 0 && <p>{state.more} more calls are not shown.</p>}
        <Ended rows={state.ended} />
    </>;
}

function Call({ call, now }) {
    const [age, silent] = [now - call.began, now - call.lastSign];
    return <li class="row">
        <div class="what">
            <a href={story(call.id)}><Said most={80}>{call.tool ?? call.method}</Said></a>
            <span class="of"> of <Said most={40}>{call.server}</Said>{call.client && <> for <Said most={60}>{call.client}</Said></>}</span>
        </div>
        <div class="age"><b>{whole(age)}</b> <State word={call.state} /></div>
        <Limits call={call} now={now} age={age} />
        <p class="small">
            last sign of life {whole(silent)} ago
            {call.attempts > 1 && <>, attempt {call.attempts}</>}
            {call.ticket && ', can be fetched later'}
            {call.message && <>: <q><Said most={200}>{call.message}</Said></q></>}
        </p>
        <div class="does">{call.hold != null && <a href="#/waiting">Decide</a>} <Sure label="Cancel" sure="Yes, cancel it" about={`${call.tool ?? call.method} of ${call.server}`}
            act={() => post(`calls/${encodeURIComponent(call.id)}/cancel`)} /></div>
    </li>;
}

function Limits({ call, now, age }) {
    const passed = MOVES.includes(call.state) ? now - call.seen : 0;
    const left = call.timeoutLeftMs == null ? null : Math.max(0, call.timeoutLeftMs - passed);
    return <div class="limits">
        {call.timeoutMs != null && left != null &&
            <Limit name="timeout" used={call.timeoutMs - left} most={call.timeoutMs} words={`${whole(left)} left of ${duration(call.timeoutMs)}`} />}
        {call.maxMs != null &&
            <Limit name="max" used={age} most={call.maxMs} words={`${whole(call.maxMs - age)} left of ${duration(call.maxMs)}`} />}
        {call.timeoutMs == null && call.maxMs == null && <span class="small">no limit</span>}
    </div>;
}

function Ended({ rows }) {
    const newest = [...rows].sort((a, b) => b.began + b.tookMs - a.began - a.tookMs);
    const [kept, field] = useFilter(newest, words, 'ended calls');
    const [few, more] = useFirst(kept, 25);
    if (!rows.length) return null;
    return <section aria-labelledby="ended">
        <h3 id="ended">Ended lately</h3>
        {field}
        <div class="scroll" tabIndex={0} role="group" aria-label="table of ended calls"><table>
            <thead><tr><th scope="col">Tool</th><th scope="col">Server</th><th scope="col">Client</th><th scope="col" class="number">Took</th>
                <th scope="col">Outcome</th><th scope="col">Ended</th></tr></thead>
            <tbody>{few.map(call => <tr key={call.id}>
                <th scope="row"><a href={story(call.id)}><Said most={60}>{call.tool ?? call.method}</Said></a></th>
                <td><Said most={40}>{call.server}</Said></td>
                <td><Said most={40}>{call.client ?? ''}</Said></td>
                <td class="number">{duration(call.tookMs)}</td>
                <td><State word={outcome(call)} kind={call.outcome === 'answered' ? 'answered' : 'other'} /></td>
                <td>{clock(call.began + call.tookMs)}</td>
            </tr>)}</tbody>
        </table></div>
        {more}
    </section>;
}

const outcome = call => call.kind ? `${plain(call.outcome, 30)}: ${plain(call.kind, 40)}` : call.outcome;
