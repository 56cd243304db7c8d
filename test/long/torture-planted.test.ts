/** A share of the torture's part `planted`: see test/torture/planted.ts. */
import { tortureTest } from '../support/torture-test.ts';
import { planted } from '../torture/planted.ts';

tortureTest(planted, { seed: 1, share: 0.08, fired: ['planted', 'caught'] });
