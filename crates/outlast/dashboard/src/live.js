// The way to outlast: the state as it is now, kept up to date by a stream of events, and what a person asks for.
//
// The token lives in this tab alone. An EventSource cannot send it, so the stream is read by fetch.

const KEY = 'outlast-token';
const FIRST_PAUSE = 500;
const LONGEST_PAUSE = 15_000;
/** A line comes every 15 s; without one for so long the connection is dead, whatever the browser thinks. */
const SILENCE = 45_000;
const ENDED = 1000;

const EMPTY = { calls: [], servers: [], holds: [], tasks: [], tools: [], ended: [], more: 0, rights: {}, views: [] };

let state = { ...EMPTY, link: 'connecting', why: '', ahead: 0 };
let token = takeToken();
let attempt = new AbortController();
const listeners = new Set();

/** A token in the address is put away before anybody can see or copy it. */
function takeToken() {
    const given = /^#token=([\w.-]+)$/.exec(location.hash)?.[1];
    if (given) {
        sessionStorage.setItem(KEY, given);
        history.replaceState(null, '', location.pathname);
    }
    return given ?? sessionStorage.getItem(KEY) ?? '';
}

export const current = () => state;

export function listen(listener) {
    listeners.add(listener);
    return () => listeners.delete(listener);
}

/** What time it is for outlast. */
export const now = () => Date.now() + state.ahead;

function become(change) {
    state = { ...state, ...change };
    for (const listener of listeners) listener();
}

export function signIn(given) {
    token = given.trim();
    sessionStorage.setItem(KEY, token);
    become({ link: 'connecting', why: '' });
    attempt.abort();
}

export function signOut() {
    token = '';
    sessionStorage.removeItem(KEY);
    become({ ...EMPTY, link: 'token', why: '' });
    attempt.abort();
}

export const hasToken = () => token !== '';

/** Asks for something. The answer as JSON; an error whose message is for people. */
export async function ask(path, body) {
    const headers = token ? { authorization: `Bearer ${token}` } : {};
    const options = body ? { method: 'POST', body: JSON.stringify(body) } : {};
    if (body) headers['content-type'] = 'application/json';
    const response = await fetch(`api/${path}`, { ...options, headers, cache: 'no-store', redirect: 'error' });
    const answer = await response.json().catch(() => ({}));
    if (!response.ok) throw new Error(answer.error?.message ?? answer.error ?? `outlast answered ${response.status}`);
    return answer;
}

/** Follows what happens for as long as the page is open. */
export async function follow() {
    let pause = FIRST_PAUSE;
    for (;;) {
        attempt = new AbortController();
        const { signal } = attempt;
        try {
            pause = (await stream(signal)) ? FIRST_PAUSE : pause;
        } catch (error) {
            if (!signal.aborted) become({ link: 'lost', why: '' });
        }
        if (state.link === 'live') become({ link: 'lost', why: '' });
        const asleep = state.link === 'token' || state.link === 'refused';
        await awake(asleep ? Infinity : signal.aborted ? 0 : pause, signal);
        pause = Math.min(2 * pause, LONGEST_PAUSE);
    }
}

/** Waits; a new token, or a network that is back, ends it. */
function awake(ms, signal) {
    return new Promise(done => {
        const timer = ms === Infinity ? 0 : setTimeout(done, ms);
        const end = () => { clearTimeout(timer); done(); };
        signal.addEventListener('abort', end, { once: true });
        addEventListener('online', end, { once: true });
    });
}

/** One connection. Whether anything came. */
async function stream(signal) {
    const headers = token ? { authorization: `Bearer ${token}` } : {};
    const response = await fetch('api/feed', { headers, signal, cache: 'no-store', redirect: 'error' });
    if (!response.ok) {
        const answer = await response.json().catch(() => ({}));
        const why = answer.error?.message ?? '';
        if (response.status === 401) become({ ...EMPTY, link: 'token', why: token ? 'This token is not known here.' : '' });
        else if (response.status === 403) become({ ...EMPTY, link: 'refused', why });
        else become({ link: 'lost', why });
        return false;
    }
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    let [rest, came] = ['', false];
    for (;;) {
        const { done, value } = await lively(reader);
        if (done) return came;
        const events = (rest + value).split('\n\n');
        rest = events.pop();
        for (const event of events) came = take(event) || came;
    }
}

/** The next piece; an error if none comes for too long. */
async function lively(reader) {
    let timer;
    const silence = new Promise((_, fail) => { timer = setTimeout(() => fail(new Error('silence')), SILENCE); });
    try {
        return await Promise.race([reader.read(), silence]);
    } catch (error) {
        reader.cancel().catch(() => {});
        throw error;
    } finally {
        clearTimeout(timer);
    }
}

function take(event) {
    const field = name => event.split('\n').find(line => line.startsWith(`${name}: `))?.slice(name.length + 2);
    const [kind, data] = [field('event'), field('data')];
    if (!data) return false;
    const value = JSON.parse(data);
    if (kind === 'state') become({ ...EMPTY, ...whole(value), link: 'live', why: '' });
    else if (kind === 'change') become(changed(value));
    return true;
}

const seen = (rows, at) => rows.map(row => ({ ...row, seen: at }));

function whole(value) {
    return { ...value, calls: seen(value.calls, value.now), ahead: value.now - Date.now() };
}

/** Rows that changed take the place of those with the same key; new ones come last. */
function merged(rows, news, gone, key) {
    if (!news?.length && !gone?.length) return rows;
    const [fresh, left] = [new Map((news ?? []).map(row => [key(row), row])), new Set(gone)];
    const kept = rows.filter(row => !left.has(key(row))).map(row => {
        const other = fresh.get(key(row));
        fresh.delete(key(row));
        return other ?? row;
    });
    return [...kept, ...fresh.values()];
}

const id = row => row.id;
const tool = row => `${row.server}\n${row.tool}`;

function changed(value) {
    const news = seen(value.calls ?? [], value.now);
    const next = {
        ahead: value.now - Date.now(),
        calls: merged(state.calls, news, value.gone, id),
        tools: merged(state.tools, value.tools, [], tool),
        ended: merged(state.ended, value.ended, [], id).slice(-ENDED),
    };
    for (const name of ['servers', 'holds', 'tasks', 'more', 'rights', 'notes']) {
        if (name in value) next[name] = value[name];
    }
    return next;
}
