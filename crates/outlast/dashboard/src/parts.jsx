// Small pieces that several views use.

import { useEffect, useRef, useState } from 'preact/hooks';
import { ask, current, listen, now } from './live.js';
import { plain } from './text.js';

/** The state, drawn anew when it changes. */
export function useLive() {
    const [, again] = useState(0);
    useEffect(() => listen(() => again(n => n + 1)), []);
    return current();
}

/** The time for outlast, once a second while somebody looks. */
export function useNow() {
    const [time, set] = useState(now());
    useEffect(() => {
        const timer = setInterval(() => document.hidden || set(now()), 1000);
        return () => clearInterval(timer);
    }, []);
    return Math.max(time, now());
}

/** What somebody else said: text and nothing else, with its own direction of writing. */
export const Said = ({ children, most }) => <bdi class="said">{plain(children, most)}</bdi>;

export const Lines = ({ children, most, label }) =>
    <pre dir="ltr" tabIndex={0} role="region" aria-label={label}>{plain(children, most, true)}</pre>;

export const State = ({ word, kind }) => <span class={`state ${kind ?? word}`}>{plain(word, 40)}</span>;

/** A row of names and values. */
export const Facts = ({ children }) => <dl class="facts">{children}</dl>;
export const Fact = ({ name, children }) =>
    children == null || children === '' ? null : <div><dt>{name}</dt><dd>{children}</dd></div>;

export const Nothing = ({ children }) => <p class="nothing">{children}</p>;

/** How much of a limit is used up. */
export function Limit({ name, used, most, words }) {
    const part = Math.min(1, Math.max(0, used / most));
    const kind = part > 0.9 ? 'bad' : part > 0.6 ? 'late' : 'good';
    return <div class="limit">
        <div class="track" aria-hidden="true"><div class={kind} style={{ width: `${100 * part}%` }} /></div>
        <span><b>{name}</b> {words}</span>
    </div>;
}

/** A button that asks once more. What it does is told to whoever cannot see it. */
export function Sure({ label, sure, about, act }) {
    const [stage, set] = useState('');
    const [why, tell] = useState('');
    const button = useRef();
    useEffect(() => { if (stage === 'asked') button.current?.focus(); }, [stage]);
    const go = async () => {
        set('busy');
        try {
            await act();
            set('done');
        } catch (error) {
            tell(error.message);
            set('');
        }
    };
    if (stage === 'done') return <span class="told" role="status">asked</span>;
    return <span class="sure" onKeyDown={event => event.key === 'Escape' && set('')}>
        {stage === 'asked' || stage === 'busy'
            ? <><button ref={button} class="strong" disabled={stage === 'busy'} onClick={go}>{sure}</button>
                <button disabled={stage === 'busy'} onClick={() => set('')}>No</button></>
            : <button aria-label={`${label}: ${plain(about, 80)}`} onClick={() => set('asked')}>{label}</button>}
        {why && <span class="told" role="alert">{plain(why, 300)}</span>}
    </span>;
}

export const post = (path, body = {}) => ask(path, body);

/** Shows the first of many, and more on demand. */
export function useFirst(rows, step) {
    const [most, set] = useState(step);
    const left = rows.length - most;
    const more = left > 0 && <p><button onClick={() => set(most + step)}>Show {Math.min(step, left)} more of {left}</button></p>;
    return [rows.slice(0, most), more];
}

/** Only the rows whose words hold what was typed. */
export function useFilter(rows, words, what) {
    const [typed, set] = useState('');
    const wanted = typed.trim().toLowerCase();
    const kept = wanted ? rows.filter(row => words(row).join(' ').toLowerCase().includes(wanted)) : rows;
    const field = rows.length > 8 || typed
        ? <label class="filter">Filter {what}<input type="search" value={typed} onInput={event => set(event.target.value)} /></label>
        : null;
    return [kept, field];
}
