/** A share of the torture's part `machines`: see test/torture/machines.ts. */
import { tortureTest } from '../support/torture-test.ts';
import { machines } from '../torture/machines.ts';

tortureTest(machines, {
  seed: 101,
  share: 0.1,
  fired: ['promote', 'taken over', 'return', 'stands still', 'goes on', 'compact', 'kill', 'follow'],
});
