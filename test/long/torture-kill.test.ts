/** A small share of the torture's part `kill`: see test/torture/kill.ts. */
import { tortureTest } from '../support/torture-test.ts';
import { words } from '../support/words.ts';
import { kill } from '../torture/kill.ts';

tortureTest(kill, {
  share: 0.0055,
  fired: [
    ...words('create write pwrite64 fsync ftruncate64 rename link unlink remove mkdir').map(
      (call) => `before ${call}`,
    ),
    ...['midway in write', 'midway in pwrite64'],
  ],
});
