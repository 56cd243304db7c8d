/** A small share of the torture's part `histories`: see test/torture/histories.ts. */
import { tortureTest } from '../support/torture-test.ts';
import { histories } from '../torture/histories.ts';

tortureTest(histories, {
  seed: 1,
  share: 0.02,
  fired: [
    'drop and kill',
    'set the clock',
    'restore',
    'put the database back',
    'put the folder back',
    'end of log lost',
    'remove a subscription',
    'several commands at once',
  ],
});
