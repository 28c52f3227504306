import { useEffect, useState } from 'preact/hooks';
import { ask } from './live.js';
import { Fact, Facts, Nothing, Said, State } from './parts.jsx';
import { clock, duration, plain } from './text.js';

/** How often a call that goes on is asked for again. */
const AGAIN = 1000;

export function Story({ id, state }) {
    const [story, set] = useState(null);
    const [why, tell] = useState('');
    const open = state.calls.some(call => call.id === id);
    useEffect(() => {
        let [timer, gone] = [0, false];
        const look = async () => {
            try {
                const found = await ask(`calls/${encodeURIComponent(id)}`);
                if (!gone) { set(found); tell(''); }
            } catch (error) {
                if (!gone) tell(error.message);
            }
            if (!gone && open) timer = setTimeout(look, AGAIN);
        };
        look();
        return () => { gone = true; clearTimeout(timer); };
    }, [id, open]);
    return <>
        <p><a href="#/now">All calls</a></p>
        {why && <p class="note" role="alert"><Said most={300}>{why}</Said></p>}
        {!story && !why && <Nothing>…</Nothing>}
        {story && <Told story={story} />}
    </>;
}

function Told({ story: { call, steps, dropped } }) {
    return <>
        <div class="row">
            <div class="what"><b><Said most={120}>{call.tool ?? call.method}</Said></b> <span class="of">of <Said most={60}>{call.server}</Said></span></div>
            <div class="age"><State word={call.outcome ?? call.state} /></div>
            <Facts>
                <Fact name="began">{clock(call.began)}</Fact>
                <Fact name="took">{call.tookMs == null ? null : duration(call.tookMs)}</Fact>
                <Fact name="client"><Said most={80}>{call.client ?? ''}</Said></Fact>
                <Fact name="whose"><Said most={80}>{call.principal ?? ''}</Said></Fact>
                <Fact name="method"><Said most={60}>{call.method}</Said></Fact>
                <Fact name="kind">{call.kind && plain(call.kind, 60)}</Fact>
                <Fact name="name"><code>{plain(call.id, 80)}</code></Fact>
            </Facts>
        </div>
        {steps.length === 0 && <Nothing>Its process shows no steps of it.</Nothing>}
        {dropped > 0 && <p class="small">{dropped} steps in the middle are not kept.</p>}
        <ol class="story">{steps.map((step, at) => <li key={at} class={step.what}>
            <span class="at" title={clock(step.at)}>+{duration(step.at - call.began)}</span>
            <b>{plain(step.what, 40)}</b> {step.text && <Said most={300}>{step.text}</Said>}
        </li>)}</ol>
    </>;
}
