import { Box, Collapse, Group, Text, UnstyledButton } from "@mantine/core";
import { type ReactNode, useState } from "react";
import { Chevron } from "./icons.tsx";

interface FoldedProps {
  readonly label: ReactNode;
  readonly children: ReactNode;
}

/** Something that is there for whoever wants to see it. */
export function Folded({ label, children }: FoldedProps) {
  const [isOpen, setOpen] = useState(false);
  return (
    <Box>
      <UnstyledButton aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
        <Group gap={4} c="dimmed">
          <Box component="span" className={isOpen ? "turned" : "straight"}>
            <Chevron size={14} />
          </Box>
          <Text size="sm" component="span" inherit={false}>
            {label}
          </Text>
        </Group>
      </UnstyledButton>
      {isOpen && (
        <Collapse expanded transitionDuration={0}>
          <Box pt="xs">{children}</Box>
        </Collapse>
      )}
    </Box>
  );
}
