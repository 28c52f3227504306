import { Fact, Facts, Lines, Nothing, Said, State, Sure, post, useNow } from './parts.jsx';
import { counted, plain, whole } from './text.js';

const LINES = 8000;

export function Servers({ state }) {
    const now = useNow();
    return <>
        {state.servers.length === 0 && <Nothing>No server is running. They are started when a client needs them.</Nothing>}
        <ul class="rows">{state.servers.map((server, at) =>
            <Server key={`${server.process}/${server.name}/${at}`} server={server} now={now} restarts={state.rights.restarts} />)}</ul>
    </>;
}

function Server({ server, now, restarts }) {
    return <li class="row">
        <div class="what"><b><Said most={60}>{server.name}</Said></b> <span class="of"><Said most={60}>{server.version ?? ''}</Said></span></div>
        <div class="age"><State word={server.state} /></div>
        <Facts>
            <Fact name="calls">{server.inFlight}</Fact>
            <Fact name="era">{server.era && plain(server.era, 40)}</Fact>
            <Fact name="waiting">{server.waiting || null}</Fact>
            <Fact name="so since">{server.since ? `${whole(now - server.since)}` : null}</Fact>
            <Fact name="restarts">{server.restarts}</Fact>
            <Fact name="process"><Said most={60}>{server.process}</Said></Fact>
        </Facts>
        {server.error && <p class="note"><Said most={300}>{server.error}</Said></p>}
        {server.stderr?.length > 0 && <details>
            <summary>last lines on stderr ({counted(server.stderr.length, 'line')})</summary>
            <Lines most={LINES} label={`stderr of ${plain(server.name, 60)}`}>{server.stderr.join('\n')}</Lines>
        </details>}
        {restarts && <div class="does"><Sure label="Restart" sure="Yes, restart it" about={server.name}
            act={() => post(`servers/${encodeURIComponent(server.name)}/restart`, { process: server.process })} /></div>}
    </li>;
}
