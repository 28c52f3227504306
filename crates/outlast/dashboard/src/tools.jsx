import { Fact, Facts, Nothing, Said, useFilter, useFirst } from './parts.jsx';
import { duration, plain } from './text.js';

export function Tools({ state }) {
    const sorted = [...state.tools].sort((a, b) => b.calls - a.calls);
    const [kept, field] = useFilter(sorted, row => [row.tool, row.server], 'tools');
    const [rows, more] = useFirst(kept, 30);
    return <>
        {field}
        {rows.length === 0 && <Nothing>{state.tools.length ? 'No tool fits.' : 'No tool has been called yet.'}</Nothing>}
        <ul class="rows">{rows.map(row => <Tool key={`${row.server}\n${row.tool}`} row={row} />)}</ul>
        {more}
    </>;
}

function Tool({ row }) {
    const failed = row.failures ? `${row.failures} (${Math.round((100 * row.failures) / row.calls)} %)` : '0';
    return <li class="row tool">
        <div class="what"><b><Said most={80}>{row.tool}</Said></b> <span class="of">of <Said most={40}>{row.server}</Said></span></div>
        <Facts>
            <Fact name="calls">{row.calls.toLocaleString()}</Fact>
            <Fact name="failed">{failed}</Fact>
            <Fact name="cut off">{row.cutOff}</Fact>
            <Fact name="half within">{duration(row.p50)}</Fact>
            <Fact name="99 of 100 within">{duration(row.p99)}</Fact>
            <Fact name="slowest">{duration(row.slowest)}</Fact>
            <Fact name="timeout">{duration(row.timeoutMs)}</Fact>
            <Fact name="proposed">{row.proposed && duration(row.proposed.timeoutMs)}</Fact>
        </Facts>
        <Histogram row={row} />
        {row.proposed?.why && <p class="small"><Said most={300}>{row.proposed.why}</Said></p>}
    </li>;
}

const [WIDE, HIGH, TOP, BASE] = [600, 90, 16, 18];
const MARKS = [1, 10, 100, 1000, 10_000, 60_000, 600_000, 3_600_000, 86_400_000];

/** How long calls took, on a scale on which each tenfold is as wide as the last; with the limits as lines. */
function Histogram({ row }) {
    const buckets = row.buckets ?? [];
    const limits = [['timeout', row.timeoutMs], ['proposed', row.proposed?.timeoutMs]].filter(([, at]) => at != null);
    if (!buckets.length) return null;
    const ends = [...buckets.map(([end]) => end), ...limits.map(([, at]) => at)];
    const [low, high] = [Math.log10(Math.max(1, Math.min(...ends) / 4)), Math.log10(Math.max(10, ...ends) * 1.6)];
    const x = ms => (WIDE * (Math.log10(Math.max(1, ms)) - low)) / (high - low);
    const most = Math.max(...buckets.map(([, count]) => count), 1);
    const floor = TOP + HIGH;
    const bar = ([end, count], at) => {
        const begin = x(at ? buckets[at - 1][0] : end / 2);
        const tall = count && Math.max(2, (HIGH * count) / most);
        return <rect key={end} x={begin} width={Math.max(1.5, x(end) - begin - 1)} y={floor - tall} height={tall} />;
    };
    return <svg class="histogram" viewBox={`0 0 ${WIDE} ${TOP + HIGH + BASE}`} role="img" aria-label={spoken(row)}>
        <g class="bars">{buckets.map(bar)}</g>
        <line class="floor" x1="0" x2={WIDE} y1={floor} y2={floor} />
        {MARKS.filter(ms => x(ms) > 10 && x(ms) < WIDE - 30).map(ms =>
            <text key={ms} class="mark" x={x(ms)} y={floor + 13} text-anchor="middle">{duration(ms)}</text>)}
        {limits.map(([name, at], place) => <g key={name} class={`cut ${name}`}>
            <line x1={x(at)} x2={x(at)} y1={TOP - 2} y2={floor} />
            <text x={x(at)} y={TOP - 5} text-anchor={anchor(x(at), limits, place, x)}>{name}</text>
        </g>)}
    </svg>;
}

/** Two names beside each other do not cover each other. */
function anchor(at, limits, place, x) {
    const other = limits[1 - place];
    if (!other || Math.abs(x(other[1]) - at) > 120) return at > WIDE - 40 ? 'end' : at < 40 ? 'start' : 'middle';
    return at < x(other[1]) || (at === x(other[1]) && place === 0) ? 'end' : 'start';
}

function spoken(row) {
    const limit = row.timeoutMs == null ? 'there is no timeout' : `the timeout is ${duration(row.timeoutMs)}`;
    const proposed = row.proposed ? `, ${duration(row.proposed.timeoutMs)} is proposed` : '';
    return `how long ${plain(row.tool, 60)} took: half within ${duration(row.p50)}, 99 of 100 within ${duration(row.p99)}, slowest ${duration(row.slowest)}; ${limit}${proposed}`;
}
