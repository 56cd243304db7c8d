/** A lab: its clock and its faults. */
import { html } from 'htm/preact';
import type { VNode } from 'preact';
import type { LabState } from '../admin/console/api.ts';
import { actions } from './action.ts';
import { count, instant, span } from './format.ts';
import { foreign, members, state } from './inline.ts';
import { facts, panel, read, table } from './parts.ts';
import { useReading } from './server.ts';

const HELP = { help: 'testing-your-client' };
const MOVES = [
  { operation: 'lab clock', given: {} },
  { operation: 'lab drop', given: {} },
];
const ADDS = [{ operation: 'lab fault add', given: {} }];

export function Lab(): VNode {
  return html`${read(useReading<LabState>('/console/lab', ['tick']), labOf)}`;
}

function labOf({ now, real_now, seed, faults }: LabState): VNode[] {
  const aheadMs = Date.parse(now) - Date.parse(real_now);
  const apart = `${span(Math.abs(aheadMs))} ${aheadMs < 0 ? 'behind' : 'ahead of'} this machine`;
  const clock = facts([
    ['Clock of the lab (UTC)', instant(Date.parse(now))],
    ['Moved', Math.abs(aheadMs) < 1000 ? 'not moved' : apart],
    ['Seed', foreign(seed, 'mono')],
  ]);
  const faultRows = table(
    { label: 'Faults', rows: faults, key: ({ id }) => id, empty: 'None.' },
    ['Fault', ({ id }) => foreign(id, 'mono')],
    ['What it does', ({ members: given }) => members(given), 'wide'],
    ['Fired', ({ fired }) => count(fired, 'time'), 'number'],
    ['State', ({ left }) => stateOf(left)],
    ['Action', ({ id }) => actions([{ operation: 'lab fault clear', given: { id } }])],
  );
  return [
    panel('Clock', clock, { ...HELP, aside: actions(MOVES) }),
    panel('Faults', faultRows, { ...HELP, aside: actions(ADDS) }),
  ];
}

function stateOf(left: number | null): VNode {
  if (left === 0) return state('done', 'used up');
  return state('held', left === null ? 'waiting, without limit' : `waiting, ${count(left, 'time')} left`);
}
