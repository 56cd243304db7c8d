/** A lab: its clock and its faults. */
import { html } from 'htm/preact';
import type { VNode } from 'preact';
import type { LabState } from '../admin/console/api.ts';
import { counted } from '../counted.ts';
import { actions } from './action.ts';
import { instant } from './format.ts';
import { foreign, soft, state, value } from './inline.ts';
import { facts, panel, read, table } from './parts.ts';
import { useReading } from './server.ts';

const HELP = { help: 'testing-your-client' };
const MOVES = ['lab clock', 'lab drop'].map((operation) => ({ operation, given: {} }));
const ADDS = [{ operation: 'lab fault add', given: {} }];

export const Lab = (): VNode => html`${read(useReading<LabState>('/console/lab', ['tick']), labOf)}`;

function labOf({ now, seed, faults }: LabState): VNode[] {
  const clock = facts([
    ['Clock of the lab (UTC)', instant(Date.parse(now))],
    ['Seed', foreign(seed, 'mono')],
  ]);
  const faultRows = table(
    { label: 'Faults', rows: faults, key: ({ id }) => id, empty: 'None.' },
    ['Fault', ({ id }) => foreign(id, 'mono')],
    [
      'What it does',
      ({ members }) => Object.entries(members).map(([name, item]) => [soft(name), ' ', value(item), ' ']),
      'wide',
    ],
    ['Fired', ({ fired }) => counted(fired, 'time'), 'number'],
    [
      'State',
      ({ left }) =>
        left === 0 ? state('done', 'used up') : state('held', `waiting, ${counted(left, 'time')} left`),
    ],
    ['Action', ({ id }) => actions([{ operation: 'lab fault clear', given: { id } }])],
  );
  return [
    panel('Clock', clock, { ...HELP, aside: actions(MOVES) }),
    panel('Faults', faultRows, { ...HELP, aside: actions(ADDS) }),
  ];
}
