// The final stage of a Dockerfile as data: what it copies, whom it runs as and what it starts.
// Knows only the instructions that the project's Dockerfile uses there; any other is an error, so
// that a test over this data cannot overlook one.

export interface CopyInstruction {
  /** Stage to copy from; undefined for the build context. */
  readonly stage: string | undefined;
  readonly sources: readonly string[];
  readonly target: string;
}

export interface FinalStage {
  readonly base: string;
  readonly copies: readonly CopyInstruction[];
  readonly user: string;
  readonly entrypoint: readonly string[];
}

export function parseFinalStage(dockerfile: string): FinalStage {
  const instructions = dockerfile
    .replaceAll(/^\s*#.*\n/gm, '')
    .replaceAll(/\\\n/g, ' ')
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '');
  const from = instructions.findLastIndex((line) => /^FROM /i.test(line));
  const stage = { base: argumentsOf(instructions[from])[0] ?? '', copies: [] as CopyInstruction[] };
  let user = '';
  let entrypoint: readonly string[] = [];
  for (const instruction of instructions.slice(from + 1)) {
    const [word = ''] = instruction.split(/\s/, 1);
    if (word === 'COPY') stage.copies.push(parseCopy(argumentsOf(instruction)));
    else if (word === 'USER') user = argumentsOf(instruction).join(' ');
    else if (word === 'ENTRYPOINT') entrypoint = parseExecForm(instruction);
    else throw new Error(`the final stage has an instruction that is not known here: ${word}`);
  }
  return { ...stage, user, entrypoint };
}

function argumentsOf(instruction = ''): string[] {
  return instruction.split(/\s+/).slice(1);
}

function parseCopy(words: readonly string[]): CopyInstruction {
  const flags = words.filter((word) => word.startsWith('--'));
  const paths = words.filter((word) => !word.startsWith('--'));
  const unknown = flags.find((flag) => !flag.startsWith('--from='));
  if (unknown !== undefined) throw new Error(`COPY has a flag that is not known here: ${unknown}`);
  const target = paths.at(-1);
  if (target === undefined || paths.length < 2) throw new Error('COPY needs sources and a target');
  return { stage: flags[0]?.slice('--from='.length), sources: paths.slice(0, -1), target };
}

/** The shell form would need a shell, which the image does not have. */
function parseExecForm(instruction: string): readonly string[] {
  const value: unknown = JSON.parse(instruction.replace(/^\w+\s+/, ''));
  if (!Array.isArray(value) || !value.every((part) => typeof part === 'string')) {
    throw new Error('ENTRYPOINT must be a JSON array of strings');
  }
  return value;
}
