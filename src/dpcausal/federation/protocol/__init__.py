"""What sites and coordinators say to each other: messages, questions, signatures, transports."""
