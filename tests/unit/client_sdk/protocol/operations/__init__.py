"""Operations as steps over rounds of messages."""
