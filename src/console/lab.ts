/** A lab: its clock, its faults, and the requests that they affected. */
import { html } from 'htm/preact';
import type { VNode } from 'preact';
import type { LabState } from '../admin/console/api-records.ts';
import { count, instant, span } from './format.ts';
import { code, facts, foreign, members, panel, read, state, table, when } from './parts.ts';
import { useReading } from './server.ts';

type Fault = LabState['faults'][number];
type Fired = LabState['fired'][number];

export function Lab(): VNode {
  return html`${read(useReading<LabState>('/console/lab', ['tick']), labOf)}`;
}

function labOf({ now, real_now, seed, faults, fired }: LabState): VNode[] {
  const aheadMs = Date.parse(now) - Date.parse(real_now);
  const apart = `${span(Math.abs(aheadMs))} ${aheadMs < 0 ? 'behind' : 'ahead of'} this machine`;
  const clock = facts([
    ['Clock of the lab (UTC)', instant(Date.parse(now))],
    ['Moved', Math.abs(aheadMs) < 1000 ? 'not moved' : apart],
    ['Seed', foreign(seed, 'mono')],
  ]);
  return [
    panel('Clock', [clock, code('wirewatch lab clock +1h', 'the command that moves it')], { help: HELP }),
    panel('Faults', table('Faults', faults, FAULTS, { key: ({ id }) => id, empty: NO_FAULTS }), {
      help: HELP,
    }),
    panel(
      'What fired',
      table('What fired', fired, FIRED, { key: ({ number }) => number, empty: 'Nothing yet.' }),
    ),
  ];
}

const HELP = 'testing-your-client';
const NO_FAULTS = html`None. ${code('wirewatch lab fault add --status 429 --retry-after 7 --endpoint listChanges', 'the command that adds one')}`;

const FAULTS = [
  ['Fault', ({ id }: Fault) => foreign(id, 'mono')],
  ['What it does', ({ members: of }: Fault) => members(of), 'wide'],
  ['Fired', ({ fired }: Fault) => count(fired, 'time'), 'number'],
  ['State', ({ left }: Fault) => stateOf(left)],
] as const;

const FIRED = [
  ['Time (UTC)', ({ at }: Fired) => when(at)],
  ['Request', ({ number }: Fired) => count(number), 'number'],
  ['Endpoint', ({ endpoint }: Fired) => foreign(endpoint ?? 'none', 'mono')],
  ['Fault', ({ fault }: Fired) => foreign(fault, 'mono')],
  ['The client got', ({ status }: Fired) => (status === null ? 'no answer' : `${status}`)],
  ['Client', ({ user_agent }: Fired) => foreign(user_agent), 'wide'],
] as const;

function stateOf(left: number | null): VNode {
  if (left === 0) return state('done', 'used up');
  return state('held', left === null ? 'waiting, without limit' : `waiting, ${count(left, 'time')} left`);
}
