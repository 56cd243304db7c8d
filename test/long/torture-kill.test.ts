/** A small share of the torture's part `kill`: see test/torture/kill.ts. */
import { tortureTest } from '../support/torture-test.ts';
import { kill } from '../torture/kill.ts';

tortureTest(kill, {
  share: 0.0055,
  fired: [
    'before create',
    'before write',
    'midway in write',
    'before pwrite64',
    'midway in pwrite64',
    'before fsync',
  ].concat([
    'before ftruncate64',
    'before rename',
    'before link',
    'before unlink',
    'before remove',
    'before mkdir',
  ]),
});
