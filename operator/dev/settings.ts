// The environment as `fairlead dev` needs it: what its local programs inherit, and whether people
// want colours. The only place in this folder that reads it.

export function programEnvironment(): NodeJS.ProcessEnv {
  return process.env;
}

/** NO_COLOR and a pipe say no (https://no-color.org). */
export function wantsColor(stream: NodeJS.WriteStream): boolean {
  return (
    stream.isTTY === true &&
    (process.env['NO_COLOR'] ?? '') === '' &&
    process.env['TERM'] !== 'dumb'
  );
}
