import { useEffect, useRef, useState } from 'preact/hooks';
import { follow, hasToken, signIn, signOut } from './live.js';
import { Now } from './now.jsx';
import { Nothing, Said, useLive } from './parts.jsx';
import { Servers } from './servers.jsx';
import { Story } from './story.jsx';
import { Tasks } from './tasks.jsx';
import { Tools } from './tools.jsx';
import { Waiting } from './waiting.jsx';

const VIEWS = [
    ['now', 'Now', Now, state => state.calls.length + (state.more ?? 0)],
    ['waiting', 'Waiting', Waiting, state => state.holds.filter(hold => hold.open).length],
    ['tasks', 'Tasks', Tasks, state => state.tasks.filter(task => OPEN.includes(task.state)).length],
    ['servers', 'Servers', Servers, state => state.servers.length],
    ['tools', 'Tools', Tools, () => 0],
];
const OPEN = ['working', 'input_required'];

const WORDS = {
    connecting: 'connecting…',
    live: 'live',
    lost: 'connection lost, trying again…',
    token: 'a token is needed',
    refused: 'refused',
};

function useRoute() {
    const read = () => location.hash.replace(/^#\/?/, '').split('/');
    const [route, set] = useState(read());
    useEffect(() => {
        const changed = () => set(read());
        addEventListener('hashchange', changed);
        return () => removeEventListener('hashchange', changed);
    }, []);
    return route;
}

export function App() {
    const state = useLive();
    const [name, ...rest] = useRoute();
    const views = VIEWS.filter(([id]) => state.views.includes(id));
    const [known, title, View] = views.find(([id]) => id === name) ?? views[0] ?? ['', 'outlast', () => null];
    const story = name === 'call' && rest.length > 0;
    const heading = useRef();
    const first = useRef(true);
    useEffect(() => { follow(); }, []);
    useEffect(() => {
        // Whoever follows a link goes on reading there; whoever has just come begins at the top.
        if (!first.current) heading.current?.focus();
        first.current = false;
    }, [name, rest.join('/')]);
    const waiting = state.holds.filter(hold => hold.open).length;
    useEffect(() => { document.title = `${waiting ? `(${waiting}) ` : ''}outlast`; }, [waiting]);
    const gate = state.link === 'token' || state.link === 'refused';
    return <>
        <a class="skip" href="#main" onClick={event => { event.preventDefault(); heading.current?.focus(); }}>Skip to content</a>
        <header>
            <h1>outlast</h1>
            <p class={`link ${state.link}`} role="status">{WORDS[state.link]}</p>
            {hasToken() && !gate && <button class="quiet" onClick={signOut}>Forget the token</button>}
        </header>
        {!gate && <nav aria-label="Views">
            <ul>{views.map(([id, label, , count]) =>
                <li key={id}><a href={`#/${id}`} aria-current={!story && id === known ? 'page' : undefined}>
                    {label}{count(state) > 0 && <> <span class="count">{count(state)}</span></>}
                </a></li>)}</ul>
        </nav>}
        <main id="main">
            <h2 ref={heading} tabIndex={-1}>{gate ? 'Who are you?' : story ? 'Story of a call' : title}</h2>
            {gate ? <Gate state={state} /> : <>
                {state.notes?.map(note => <p class="note" role="alert" key={note}><Said most={300}>{note}</Said></p>)}
                {story ? <Story id={rest.map(decodeURIComponent).join('/')} state={state} key={rest.join('/')} /> : <View state={state} />}
            </>}
        </main>
        <Footer rights={state.rights} gate={gate} />
    </>;
}

function Gate({ state }) {
    const [typed, set] = useState('');
    if (state.link === 'refused') return <Nothing><Said most={300}>{state.why || 'This outlast shows you nothing.'}</Said></Nothing>;
    const submit = event => { event.preventDefault(); if (typed.trim()) signIn(typed); };
    return <form class="gate" onSubmit={submit}>
        <label>Token
            <input type="password" autocomplete="off" spellcheck={false} value={typed} onInput={event => set(event.target.value)} />
        </label>
        <button class="strong">Show</button>
        {state.why && <p role="alert">{state.why}</p>}
        <p>The one that <code>outlast token new NAME</code> showed. It stays in this tab and is forgotten with it.</p>
    </form>;
}

function Footer({ rights, gate }) {
    if (gate || !rights.sees) return <footer />;
    const own = <>You see the calls of <b><Said>{rights.principal}</Said></b>{rights.decides ? '' : ' and cannot decide what waits'}.</>;
    return <footer><p>{rights.sees === 'own' ? own : 'You see everything that runs here.'}</p></footer>;
}
